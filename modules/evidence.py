"""What the reader gets to see of the chunks, and how it is written down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain_core.documents import Document

from .prompts import is_refusal


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
    return f"Supplementary question: {question}\nAnswer: {answer}"


def _render(number: int, chunk: Document) -> str:
    passage = f"[{number}] {chunk.metadata.get('source', '')}\n{chunk.page_content}"
    sub_answer = str(chunk.metadata.get("sub_answer") or "")
    if is_refusal(sub_answer):
        return passage
    return f"{passage}\n{render_sub_answer(str(chunk.metadata.get('next_query', '')), sub_answer)}"
