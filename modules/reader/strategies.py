"""Strategies of reading evidence: at once, passage by passage, or as a digest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..calls.growing_text import Delta, TextListener
from ..calls.messages import Message
from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..calls.tokens import beginning, message_tokens, shortened, text_tokens
from ..calls.usage import CallMeter
from ..config.answer_form import USUAL_FORM, AnswerForm
from ..config.reading import AnswerStrategy
from ..errors import BudgetSpent, LimitName
from ..llm.contract import ChatLLM
from .formed import in_form
from .prompts import (
    ANSWER,
    REFUSAL,
    combine_messages,
    digest_messages,
    finish_messages,
    note_messages,
    parse_note,
    parse_scored,
    reader_messages,
    refine_messages,
    scored_messages,
)
from .refusals import is_refusal

AskForDigest = Callable[[list[Message]], Awaitable[str | None]]
"""A function that makes one model call; None if it failed or the budget is spent."""


async def digested(
    passages: Sequence[str],
    query: str,
    ask: AskForDigest,
    *,
    max_prompt_tokens: int,
    max_tokens: int,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> str:
    """Digest the passages for a question in ``max_tokens`` at most, with a passage's number behind each fact.

    Each call reads as many passages as fit into a prompt of ``max_prompt_tokens``. Passages of a failed call are
    shortened instead. They are given best first, and numbered from 1.
    """
    query = shortened(query, max_prompt_tokens // 4)
    room = max(1, max_prompt_tokens - message_tokens(digest_messages("", query, prompts)))
    batches = _batches([f"[{number}] {passage}" for number, passage in enumerate(passages, start=1)], room)
    parts: list[str] = []
    for batch in batches:
        share = max_tokens // len(batches)
        digest = await ask(digest_messages("\n\n".join(batch), query, prompts))
        cut = [shortened(passage, share // len(batch)) for passage in batch]
        parts.append(beginning(digest, share) if digest else "\n\n".join(cut))
    return beginning("\n\n".join(filter(None, parts)), max_tokens)


def _batches(passages: Sequence[str], room: int) -> list[list[str]]:
    """Group the passages, in order, into as few prompts as hold them; too long ones are shortened."""
    batches: list[list[str]] = []
    left = 0
    for passage in (shortened(passage, room) for passage in passages):
        cost = text_tokens(passage) + 1
        if not batches or cost > left:
            batches.append([])
            left = room
        batches[-1].append(passage)
        left -= cost
    return batches


@dataclass(frozen=True, kw_only=True)
class ReaderAnswer:
    """The reader's answer."""

    text: str
    problem: str = ""
    """Why the spent budget cut the strategy short; ``""`` if it did not."""
    limit: LimitName | None = None
    """The limit that did."""


async def read_evidence(  # noqa: PLR0913 - the last four have defaults
    strategy: AnswerStrategy,
    llm: ChatLLM,
    query: str,
    evidence: str,
    passages: Sequence[str],
    *,
    meter: CallMeter,
    on_text: TextListener | None = None,
    on_thinking: TextListener | None = None,
    prompts: Prompts = DEFAULT_PROMPTS,
    form: AnswerForm = USUAL_FORM,
) -> ReaderAnswer:
    """Answer ``query`` from n passages, best first; fewer than two are read at once by every strategy.

    - ``stuff``: all at once, in one call.
    - ``map_reduce``: a note of each passage in parallel, then the answer from the notes: n + 1 calls. No useful note
      gives the refusal, and a single note with an answer gives that answer, both without the last call.
    - ``refine``: passage by passage, with growing knowledge; the last passage's call gives the answer: n calls.
    - ``map_rerank``: an answer from each passage in parallel; the one of highest confidence wins, of equals that of the
      better passage: n calls. Answers win over refusals.

    The call that ``meter`` holds is kept for the last call and suffices for an answer. With a spent budget, map_reduce
    and refine read the remaining passages in the last call; map_rerank takes the answers so far, or reads all at once.

    The last call writes the answer in the ``form``. Where a strategy has an answer without one, and the form is another
    than the usual one, a further call writes it.

    ``evidence`` is what ``stuff`` shows in one prompt, ``passages`` the same, one text a passage, as from
    ``evidence.split_evidence``. ``on_text`` receives each piece of the answer from the last call, or the whole answer
    without a last call, and ``on_thinking`` each piece of the thinking of the last call.

    Raises:
        ModelCallError: A call failed after its last attempt; parallel calls are completed first.
        ModelSetupError: The endpoint refused the key, the model's name or the request.
        BudgetSpent: The last call could not be made.
    """
    reading = _Reading(llm, query, evidence, passages, meter, prompts, form)
    ways: Mapping[AnswerStrategy, Callable[[], Awaitable[list[Message] | str]]] = {
        "map_reduce": reading.map_reduce,
        "refine": reading.refine,
        "map_rerank": reading.map_rerank,
    }
    last = reading.all_at_once() if strategy == "stuff" or len(passages) < 2 else await ways[strategy]()
    if isinstance(last, str) and form.needs_reader and not is_refusal(last):
        last = combine_messages(query, [f"{ANSWER} {last}"], prompts)
    if isinstance(last, str):
        if on_text is not None:
            on_text(Delta(last))
        text = last
    else:
        writer = in_form(llm, form)
        text = (await writer.complete(last, meter=meter, on_text=on_text, on_thinking=on_thinking)).text
    if reading.spent is None:
        return ReaderAnswer(text=text)
    return ReaderAnswer(text=text, problem=f"{strategy} was cut short: {reading.spent}", limit=reading.spent.limit)


@dataclass
class _Reading:
    """One question and one evidence. Each strategy returns the messages of its last call, or the answer without one."""

    llm: ChatLLM
    query: str
    evidence: str
    passages: Sequence[str]
    meter: CallMeter
    prompts: Prompts
    form: AnswerForm
    spent: BudgetSpent | None = None
    """The budget's error for a call that was not made; None if all were made."""

    def all_at_once(self) -> list[Message]:
        return reader_messages(self.query, self.evidence, self.prompts)

    async def map_reduce(self) -> list[Message] | str:
        replies = await self._ask_each(note_messages)
        if all(reply is None for reply in replies):
            return self.all_at_once()
        notes = [None if reply is None else parse_note(reply) for reply in replies]
        useful = [note for note in notes if note is not None]
        if None not in replies and not useful:
            return REFUSAL
        if None not in replies and len(useful) == 1 and useful[0].answers:
            return useful[0].text
        # A passage that was not read is a note of its own; one that gave none is left out.
        texts = [
            passage if reply is None else str(note or "")
            for passage, reply, note in zip(self.passages, replies, notes, strict=True)
        ]
        return combine_messages(self.query, _numbered(texts), self.prompts)

    async def refine(self) -> list[Message] | str:
        known, read = "", 0
        for passage in self.passages[:-1]:
            reply = await self._ask(refine_messages(self.query, known, passage, self.prompts))
            if reply is None:
                break
            known = known if is_refusal(reply) else reply
            read += 1
        if not read:
            return self.all_at_once()
        left = "\n\n".join(_numbered(self.passages)[read:])
        if not known:
            return reader_messages(self.query, left, self.prompts)
        return finish_messages(self.query, known, left, self.prompts)

    async def map_rerank(self) -> list[Message] | str:
        replies = await self._ask_each(scored_messages)
        if replies.count(None) == 1 and not self.form.needs_reader:  # the held call is enough for it
            last = replies.index(None)
            messages = scored_messages(self.query, self.passages[last], self.prompts)
            replies[last] = (await self.llm.complete(messages, meter=self.meter)).written
            self.spent = None
        scored = [parse_scored(reply) for reply in replies if reply is not None]
        answers = [answer for answer in scored if not is_refusal(answer.text)]
        if answers:
            return max(answers, key=lambda answer: answer.confidence).text  # the first of equals
        return self.all_at_once() if None in replies else REFUSAL

    async def _ask_each(self, messages: Callable[[str, str, Prompts], list[Message]]) -> list[str | None]:
        """Return one reply a passage, in order; None where the budget is spent."""
        asked = (self._ask(messages(self.query, passage, self.prompts)) for passage in self.passages)
        # All calls end before an error is raised, so that the cache can save those that were paid for.
        replies = await asyncio.gather(*asked, return_exceptions=True)
        found: list[str | None] = []
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
            found.append(reply)
        return found

    async def _ask(self, messages: list[Message]) -> str | None:
        """Return the reply of a call before the last; None if the budget is spent."""
        try:
            unheld = replace(self.meter, held_by="")  # the records are shared
            return (await self.llm.complete(messages, meter=unheld)).written
        except BudgetSpent as spent:
            self.spent = spent
            return None


def _numbered(texts: Sequence[str]) -> list[str]:
    return [f"[{number}] {text}" for number, text in enumerate(texts, start=1) if text]
