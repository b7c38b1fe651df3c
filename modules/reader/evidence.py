"""What the reader gets to see of the chunks, and how it is written down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from langchain_core.documents import Document

from .material import as_line, as_material
from .refusals import is_refusal

_PAIR = "Supplementary question: "
_BEFORE_PAIR = re.compile(rf"\n\n(?={_PAIR})")


def usable_chunks(chunks: Sequence[Document]) -> list[Document]:
    """Chunks that the reader should see, in their order: scored 1 or 2, or never scored; all chunks if none is."""
    usable = [chunk for chunk in chunks if chunk.metadata.get("score") != 0]
    return usable or list(chunks)


def render_evidence(chunks: Iterable[Document]) -> str:
    """Numbered passages, each with its source and, where its sub-question was answered, question and answer.

    A sub-answer that is a refusal is left out: it is no knowledge.
    """
    return "\n\n".join(_render(number, chunk) for number, chunk in enumerate(chunks, start=1))


def render_sub_answer(question: str, answer: str) -> str:
    """A supplementary question with its answer, as evidence has them."""
    return f"{_PAIR}{as_line(question)}\nAnswer: {as_material(answer)}"


def split_evidence(context: str, chunks: Iterable[Document]) -> tuple[str, ...]:
    """What a reader was shown, one text a passage in its order: source, text, and a sub-question with its answer.

    Sub-questions that belong to no passage come last, each a text of its own. Nothing of the context is lost but the
    numbers of its passages: what no chunk gives stays together as a last text.

    Args:
        context: From ``render_evidence``, maybe with pairs of ``render_sub_answer`` behind it; may be empty.
        chunks: Those that were found, shown or not, in any order.
    """
    passages: list[str] = []
    left, rest = list(chunks), context
    while found := _opening(rest, len(passages) + 1, left):
        text, chunk = found
        left = [other for other in left if other is not chunk]
        rest = rest[len(text) :].removeprefix("\n\n")
        passages.append(text.removeprefix(f"[{len(passages) + 1}] "))
    return (*passages, *(_BEFORE_PAIR.split(rest.strip()) if rest.strip() else ()))


def _opening(context: str, number: int, chunks: Iterable[Document]) -> tuple[str, Document] | None:
    """The passage that a context begins with, the longest that fits; None if it begins with none."""
    rendered = ((_render(number, chunk), chunk) for chunk in chunks)
    fitting = [found for found in rendered if f"{context}\n\n".startswith(f"{found[0]}\n\n")]
    return max(fitting, key=lambda found: len(found[0]), default=None)


def _render(number: int, chunk: Document) -> str:
    source = as_line(str(chunk.metadata.get("source", "")))
    passage = f"[{number}] {source}\n{as_material(chunk.page_content)}"
    sub_answer = str(chunk.metadata.get("sub_answer") or "")
    if is_refusal(sub_answer):
        return passage
    return f"{passage}\n{render_sub_answer(str(chunk.metadata.get('next_query', '')), sub_answer)}"
