"""The filter of candidates before an answer: does a chunk belong to it, with a key passage and a reason."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel
from typing_extensions import TypedDict

from ..calls.completion import Completion
from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..calls.usage import CallMeter
from ..errors import BudgetSpent, LimitName, ModelCallError, ModelSetupError
from ..llm.contract import ChatLLM, model_fingerprint
from ..llm.json_reply import JsonChat, ReplyProblem, ask_until_usable, parse_json_reply
from .contract import about
from .generated import TextInReply
from .prompts import INSERT_BLOCK_PROMPTS, INSERT_BLOCK_SCHEMA, insert_block_messages

if TYPE_CHECKING:
    from langchain_core.documents import Document

T = TypeVar("T")

MAX_KEY_PASSAGE = 600
"""Most characters of a key passage; a longer one is cut."""
MAX_REASON = 300
NOT_IN_TEXT = "the key passage is not in the text"
BELONGS, KEY_PASSAGE, REASON, PROBLEM = "block_belongs", "key_passage", "block_reason", "block_problem"
BLOCK_KEYS = (BELONGS, KEY_PASSAGE, REASON, PROBLEM)
"""Keys of a block in the metadata of its chunk."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """What the filter says of one chunk.

    >>> Block(belongs=None, problem="the model is down").belongs is None
    True
    """

    belongs: bool | None
    """None if the filter's model failed; the chunk then stays."""
    key_passage: str = ""
    """A quotation of the chunk's text, word for word; ``""`` without one."""
    reason: str = ""
    problem: str = ""
    """Why it is unknown whether the chunk belongs, or that the model's key passage was no quotation; else ``""``."""

    spent: LimitName | None = None
    """The limit that allowed no call for the chunk; None where none was in the way."""

    def metadata(self) -> dict[str, str | bool | None]:
        """Return the block as metadata of its chunk."""
        block = {BELONGS: self.belongs, KEY_PASSAGE: self.key_passage, REASON: self.reason, PROBLEM: self.problem}
        return block | ({"budget_spent": self.spent} if self.spent else {})


class BlockReport(TypedDict):
    """What the filter did for one answer."""

    judged: int
    """Candidates."""
    taken_out: int
    """Candidates that do not belong to the answer, and that the reader did not see."""
    unknown: int
    """Candidates that stayed because the filter's model failed."""
    none_left: bool
    """True if none belonged, so that the reader saw all of them."""


class _Reply(BaseModel):
    belongs: bool
    key_passage: TextInReply = ""
    reason: TextInReply = ""


class InsertBlockFilter:
    """Asks a model of each candidate whether it belongs to the answer.

    ::

        blocks = await InsertBlockFilter(llm).blocks(query, chunks, meter=meter)
    """

    def __init__(
        self, llm: ChatLLM, *, max_repairs: int = 1, max_tokens: int = 2048, prompts: Prompts = DEFAULT_PROMPTS
    ) -> None:
        """Allow ``max_repairs`` further calls after an unusable reply, each of at most ``max_tokens`` tokens."""
        self._llm = llm
        self._chat = JsonChat(llm, max_tokens=max_tokens)
        self._max_repairs = max_repairs
        self._max_tokens = max_tokens
        self._prompts = prompts

    def fingerprint(self) -> dict[str, str]:
        """Return model, prompt version and the limits of a reply."""
        return {
            **model_fingerprint(self._llm),
            "prompt": self._prompts.version(INSERT_BLOCK_PROMPTS),
            "max_repairs": str(self._max_repairs),
            "max_tokens": str(self._max_tokens),
        }

    async def blocks(self, query: str, chunks: Sequence[Document], *, meter: CallMeter) -> list[Block]:
        """Return the blocks of chunks, in their order; all are asked at once, in one or two calls each.

        Raises:
            ModelSetupError: The model's endpoint can serve no request; the other calls end first.
        """
        asked = (self._block(query, chunk, meter) for chunk in chunks)
        found = await asyncio.gather(*asked, return_exceptions=True)  # others are paid for and journaled
        blocks = [each for each in found if isinstance(each, Block)]
        if len(blocks) < len(found):
            raise next(each for each in found if isinstance(each, BaseException))
        return blocks

    async def _block(self, query: str, chunk: Document, meter: CallMeter) -> Block:
        text = chunk.page_content

        def read(completion: Completion) -> Block:
            reply = parse_json_reply(completion.text, _Reply)
            quoted = quotation_in(text, reply.key_passage)
            is_foreign = bool(reply.key_passage.strip()) and not quoted
            return Block(
                belongs=reply.belongs,
                key_passage=quoted[:MAX_KEY_PASSAGE],
                reason=reply.reason.strip()[:MAX_REASON],
                problem=NOT_IN_TEXT if is_foreign else "",
            )

        messages = insert_block_messages(query, text, self._prompts)
        try:
            with about(chunk, meter) as own:
                async with own.budget.in_time() if own.budget else nullcontext():
                    return await ask_until_usable(
                        self._chat, messages, INSERT_BLOCK_SCHEMA, read, meter=own, max_repairs=self._max_repairs
                    )
        except ModelSetupError:
            raise
        except (ReplyProblem, ModelCallError, BudgetSpent) as error:
            spent = error.limit if isinstance(error, BudgetSpent) else None
            return Block(belongs=None, problem=str(error), spent=spent)

    def with_prompts(self, prompts: Prompts) -> InsertBlockFilter:
        """Return the filter of the same model with other prompts."""
        other = InsertBlockFilter(
            self._llm, max_repairs=self._max_repairs, max_tokens=self._max_tokens, prompts=prompts
        )
        other._chat = self._chat
        return other


def quotation_in(text: str, quoted: str) -> str:
    r"""Return the part of a text that a quotation repeats up to white space and quotation marks; ``""`` without one.

    >>> quotation_in("Class Delta\nneeds Vellin.", '"Delta needs Vellin"')
    'Delta\nneeds Vellin'
    >>> quotation_in("Class Delta needs Vellin.", "Delta needs oil")
    ''
    """
    words = [(word.start(), word[0]) for word in _WORD.finditer(text)]
    on_one_line = " ".join(word for _, word in words)
    starts = [0, *accumulate(len(word) + 1 for _, word in words)]

    def place(at: int) -> int:
        word = bisect_right(starts, at) - 1
        return words[word][0] + at - starts[word]

    for sought in (" ".join(quoted.split()), " ".join(quoted.strip(_QUOTES).split())):
        if sought and (at := on_one_line.find(sought)) >= 0:
            return text[place(at) : place(at + len(sought) - 1) + 1]
    return ""


_WORD = re.compile(r"\S+")
_QUOTES = " \t\r\n\"'“”‘’「」『』«»…"


def with_block(chunk: Document, block: Block) -> Document:
    """Return the chunk with its block in the metadata."""
    return chunk.model_copy(update={"metadata": {**chunk.metadata, **block.metadata()}})


def without_block(metadata: Mapping[str, T]) -> dict[str, T]:
    """Return the metadata of a chunk without the block of another answer."""
    return {key: value for key, value in metadata.items() if key not in BLOCK_KEYS}


class Quoted(TypedDict):
    """What a source shows of its block."""

    key_passage: str
    reason: str


def quoted_in(metadata: Mapping[str, object]) -> Quoted:
    """Return key passage and reason of a chunk's block; both are ``""`` without one.

    Where it is unknown whether the chunk belongs, or the key passage was no quotation, the reason says so.
    """
    reason, problem = str(metadata.get(REASON) or ""), str(metadata.get(PROBLEM) or "")
    if metadata.get(BELONGS, True) is None:
        problem = f"unknown: {problem}"
    return Quoted(
        key_passage=str(metadata.get(KEY_PASSAGE) or ""),
        reason=f"{reason} ({problem})" if reason and problem else reason or problem,
    )


def left_in(chunks: Sequence[Document]) -> list[Document]:
    """Return the chunks that the filter left in; all if it left none, or was not asked."""
    report = report_of(chunks)
    if report is None or report["none_left"]:
        return list(chunks)
    return [chunk for chunk in chunks if chunk.metadata.get(BELONGS) is not False]


def report_of(chunks: Iterable[Document]) -> BlockReport | None:
    """Count the blocks of chunks; None if the filter was not asked."""
    blocks = [chunk.metadata[BELONGS] for chunk in chunks if BELONGS in chunk.metadata]
    if not blocks:
        return None
    out = blocks.count(False)
    is_none_left = out == len(blocks)
    return BlockReport(
        judged=len(blocks),
        taken_out=0 if is_none_left else out,
        unknown=blocks.count(None),
        none_left=is_none_left,
    )
