"""The judge that takes all chunks of a query in one call, and says whether they suffice together."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from langchain_core.documents import Document
from pydantic import BaseModel, BeforeValidator, Field

from ..calls.completion import Completion
from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..calls.usage import CallMeter
from ..digests import json_digest
from ..llm.contract import ChatLLM, model_fingerprint
from ..llm.json_reply import JsonChat, ReplyProblem, ask_for_best, parse_json_reply
from .contract import SetVerdict, Verdict, sub_question_problem, usable_question
from .generated import ScoreInReply, TextInReply
from .prompts import BATCH_SCHEMA, BATCHED_JUDGE, batch_messages


def _percent(value: object) -> object:
    """Leave out what is no number from 0 to 100: a score without a probability is one all the same."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= 100 else None  # type: ignore[operator]


def _truth(value: object) -> object:
    return value if isinstance(value, bool) else None


class _Entry(BaseModel):
    passage: int
    score: ScoreInReply
    percent: Annotated[float | None, BeforeValidator(_percent)] = None
    next_query: TextInReply = ""


class _Reply(BaseModel):
    reason: TextInReply = ""
    suffices: Annotated[bool | None, BeforeValidator(_truth)] = None
    passages: list[_Entry] = Field(min_length=1)


def parse_set_verdict(
    reply: str, query: str, passages: int, *, expand: bool = True, cut_off: bool = False
) -> SetVerdict:
    """Parse the verdicts in a reply, in the order of the numbers of the passages.

    A passage that the reply lacks, or names twice, has an unknown verdict with a problem. A 1 keeps its ``next_query``
    as in ``parse_verdict``; it needs none where the passages suffice or another one asks, and of entries that ask the
    same, the likeliest asks.

    Raises:
        ReplyProblem: The reply holds no verdict of any passage.
    """
    parsed = parse_json_reply(reply, _Reply)
    named = Counter(entry.passage for entry in parsed.passages)
    entries = {entry.passage: entry for entry in parsed.passages if named[entry.passage] == 1}
    if not entries.keys() & range(1, passages + 1):
        raise ReplyProblem(f"It has no entry for the passages 1 to {passages}.")
    last = parsed.passages[-1].passage if cut_off else 0
    expand = expand and parsed.suffices is not True
    verdicts = [
        _verdict(entries[number], query, parsed.reason.strip(), expand=expand, cut_off=number == last)
        if number in entries
        else Verdict(status="unknown", problem=f"Passage {number} has {named[number] or 'no'} entries.")
        for number in range(1, passages + 1)
    ]
    return SetVerdict(verdicts=tuple(_asked_once(verdicts)), suffices=parsed.suffices)


def _verdict(entry: _Entry, query: str, reason: str, *, expand: bool, cut_off: bool) -> Verdict:
    question = problem = ""
    if entry.score == 1 and expand:
        question, problem = usable_question(entry.next_query, query, cut_off=cut_off)
    return Verdict(
        status="judged",
        score=entry.score,
        p_needed=None if entry.percent is None else entry.percent / 100,
        reason=reason,
        next_query=question,
        problem=problem,
    )


def _asked_once(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts with each question once, and without the problem of entries that leave it to another."""
    asking: dict[str, Verdict] = {}
    for verdict in verdicts:
        if question := " ".join(verdict.next_query.casefold().split()):
            asking[question] = max(asking.get(question, verdict), verdict, key=lambda each: each.p_needed or 0.0)
    askers = {id(verdict) for verdict in asking.values()}
    return [
        replace(verdict, next_query="", problem="")
        if verdict.score == 1 and askers and id(verdict) not in askers and verdict.problem in ("", _NO_QUESTION)
        else verdict
        for verdict in verdicts
    ]


_NO_QUESTION = sub_question_problem("", "?")


class BatchedJudge:
    """Requests the verdicts on all chunks of a query in one call, as JSON.

    The chunks are shown in an order drawn from the query and their ids, since models prefer the first. After an
    unusable reply the model is called again with the problem; verdicts that were usable then stay.

    ::

        judge = BatchedJudge(llm, max_repairs=1)
    """

    def __init__(
        self, llm: ChatLLM, *, max_repairs: int = 2, max_tokens: int = 4096, prompts: Prompts = DEFAULT_PROMPTS
    ) -> None:
        """Allow ``max_repairs`` further calls after an unusable reply, each of at most ``max_tokens`` tokens."""
        self._llm = llm
        self._chat = JsonChat(llm, max_tokens=max_tokens)
        self._max_repairs = max_repairs
        self._max_tokens = max_tokens
        self._prompts = prompts

    def fingerprint(self) -> dict[str, str]:
        """Return kind, model, prompt version and the limits of a reply."""
        return {
            "kind": "batched",
            **model_fingerprint(self._llm),
            "prompt": self._prompts.version(BATCHED_JUDGE),
            "max_repairs": str(self._max_repairs),
            "max_tokens": str(self._max_tokens),
        }

    def expected_calls(self, chunks: int) -> int:
        """Return 1 for any chunks."""
        return min(chunks, 1)

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        """Judge all chunks, in 1 to ``1 + max_repairs`` calls; a chunk that no reply names has an unknown verdict."""
        order = _shuffled(query, chunks)
        messages = batch_messages(query, [chunks[at].page_content for at in order], self._prompts)

        def read(completion: Completion, earlier: SetVerdict | None) -> tuple[SetVerdict, str]:
            cut_off = completion.is_cut_off
            given = parse_set_verdict(completion.text, query, len(order), expand=expand, cut_off=cut_off)
            joined = _joined(earlier, given)
            return joined, _problem_of(joined)

        found, problem = await ask_for_best(
            self._chat, messages, BATCH_SCHEMA, read, meter=meter, max_repairs=self._max_repairs
        )
        if found is None:
            return SetVerdict(verdicts=(Verdict(status="unknown", problem=problem),) * len(chunks))
        in_order = dict(zip(order, found.verdicts, strict=True))
        return replace(found, verdicts=tuple(in_order[at] for at in range(len(chunks))))


def _shuffled(query: str, chunks: Sequence[Document]) -> list[int]:
    """Return the places of the chunks in an order that the query and their ids decide, in whatever order they come."""
    ids = [str(chunk.metadata.get("chunk_id", place)) for place, chunk in enumerate(chunks)]
    order = sorted(range(len(chunks)), key=ids.__getitem__)
    seed = json_digest([query, sorted(ids)])
    random.Random(seed).shuffle(order)
    return order


def _joined(earlier: SetVerdict | None, now: SetVerdict) -> SetVerdict:
    """Return the new verdicts, and the earlier ones where those had no problem or the new ones have no score."""
    if earlier is None:
        return now
    pairs = zip(earlier.verdicts, now.verdicts, strict=True)
    verdicts = tuple(old if not old.problem or new.status == "unknown" else new for old, new in pairs)
    return SetVerdict(verdicts=verdicts, suffices=earlier.suffices if now.suffices is None else now.suffices)


def _problem_of(given: SetVerdict) -> str:
    """Return what is worth another call: passages without a verdict, or no question where one is needed."""
    is_asked = any(verdict.next_query for verdict in given.verdicts)
    problems = (
        verdict.problem if verdict.status == "unknown" else f"Passage {number}: {verdict.problem}"
        for number, verdict in enumerate(given.verdicts, start=1)
        if verdict.problem and (verdict.status == "unknown" or not is_asked)
    )
    return " ".join(problems)
