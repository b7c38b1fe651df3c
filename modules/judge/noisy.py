"""Judge and sub-question writer of a chosen quality, for experiments without a model. They alone see gold.

They book the calls that a model would make in their place, with the usual prompts and their verdicts as replies; the
tokens are estimates, without those of reasons.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from langchain_core.documents import Document

from ..calls.messages import Message
from ..calls.prices import SIMULATED
from ..calls.tokens import message_tokens, text_tokens
from ..calls.usage import CallMeter
from ..errors import NoQuestion
from .contract import AnyJudge, Score, SetVerdict, Verdict
from .gold import GoldTable, Need, keys_of
from .noise import Noise
from .prompts import ask_again_messages, batch_messages, judge_messages


def noisy_judge(table: GoldTable, noise: Noise) -> AnyJudge:
    """Return a judge of the gold documents in ``table``: of chunks one by one, or of sets with ``noise.batched``.

    ::

        need = Need(title="KS-1", keys=frozenset({"ks-1.md"}))
        table = GoldTable([GoldQuestion(question="Which class is KS-1?", needs=(need,))])
        judge = noisy_judge(table, Noise(auc=0.8))
    """
    return NoisySetJudge(table, noise) if noise.batched else NoisyJudge(table, noise)


class _Noisy:
    def __init__(self, table: GoldTable, noise: Noise) -> None:
        self._table = table
        self._noise = noise
        self._needs = table.needs_for_questions if noise.sees_wrong_questions else table.needs

    def fingerprint(self) -> dict[str, str]:
        """Return kind, parameters and a digest of the gold documents."""
        return {"kind": "noisy", **self._noise.fingerprint(), "gold": self._table.digest}

    def known_needs(self, query: str) -> tuple[tuple[Need, ...], bool]:
        """Return what a query needs, and whether it is a sub-question that helps no question of the table."""
        return self._table.needs(query), not self._table.needs_for_questions(query)

    def _verdict(
        self, query: str, chunk: Document, held: AbstractSet[str], *, expand: bool, may_suffice: bool
    ) -> Verdict:
        """Judge a chunk; its sub-question is for what the documents ``held`` lack."""
        chunk_id = _id_of(chunk)
        own = keys_of(chunk.metadata, self._table.key_field)
        needs = self._needs(query)
        met = sum(bool(need.keys & own) for need in needs)
        is_gold, is_all = met > 0, len(needs) == 1 or 0 < met == len(needs)  # a text may stand for several documents
        is_needed, p_needed = self._noise.chunk(query, chunk_id, gold=is_gold)
        score: Score = (2 if may_suffice and is_all else 1) if is_needed else 0
        question = ""
        if score == 1 and expand:
            right = self._table.missing(query, held | own) if is_gold else ()
            wrong = self._table.others(query, chunk.page_content)
            question = self._noise.question(query, chunk_id, 1, right=right, wrong=wrong) or ""
        return Verdict(
            status="judged",
            score=score,
            p_needed=p_needed,
            is_calibrated=True,
            next_query=question,
            problem="there is nothing to ask about" if score == 1 and expand and not question else "",
        )


class NoisyJudge(_Noisy):
    """Scores each chunk by itself, with the errors of ``noise``: 1 if the query needs it, 2 if it needs nothing else.

    A chunk that is wrongly held to be needed asks about another title of its passage, or of the question's distractors.
    """

    def expected_calls(self, chunks: int) -> int:
        """Return one call for each chunk."""
        return chunks

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """Return the verdict.

        Raises:
            BudgetSpent: The search tree may make no more model calls.
        """
        meter.reserve()
        verdict = self._verdict(query, chunk, frozenset(), expand=expand, may_suffice=True)
        _book(meter, judge_messages(query, chunk.page_content), _reply(verdict))
        return verdict


class NoisySetJudge(_Noisy):
    """Scores all chunks of a query 0 or 1, as ``NoisyJudge``, and says whether they hold all that it needs together.

    A sub-question is for what they lack together.
    """

    def expected_calls(self, chunks: int) -> int:
        """Return 1."""
        return 1

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        """Return the verdicts.

        Raises:
            BudgetSpent: The search tree may make no more model calls.
        """
        meter.reserve()
        held = frozenset().union(*(keys_of(chunk.metadata, self._table.key_field) for chunk in chunks))
        needs = self._needs(query)
        complete = bool(needs) and all(need.keys & held for need in needs)
        suffices, p_suffices = self._noise.together(query, map(_id_of, chunks), complete=complete)
        verdicts = tuple(self._verdict(query, chunk, held, expand=expand, may_suffice=False) for chunk in chunks)
        _book(meter, batch_messages(query, [each.page_content for each in chunks]), *map(_reply, verdicts))
        return SetVerdict(verdicts=verdicts, suffices=suffices, p_suffices=p_suffices)


class NoisyWriter:
    """Writes the sub-questions of further tries, each drawn anew: right with P ``noise.writer``.

    ::

        writer = NoisyWriter(GoldTable([]), Noise(writer=0.5))
    """

    def __init__(self, table: GoldTable, noise: Noise) -> None:
        self._table = table
        self._noise = noise

    def fingerprint(self) -> dict[str, str]:
        """Return kind, parameters and a digest of the gold documents."""
        return {"kind": "noisy", **self._noise.fingerprint(), "gold": self._table.digest}

    async def write(self, query: str, chunk: Document, tried: Sequence[str], *, meter: CallMeter) -> str:
        """Return a question other than those in ``tried``.

        Raises:
            BudgetSpent: The search tree may make no more model calls.
            NoQuestion: There is no other title to ask about.
        """
        meter.reserve()
        own = keys_of(chunk.metadata, self._table.key_field)
        is_gold = any(need.keys & own for need in self._table.needs(query))
        right = [each for each in self._table.missing(query, own) if each not in tried] if is_gold else []
        wrong = self._table.others(query, chunk.page_content, besides=tried)
        question = self._noise.question(query, _id_of(chunk), len(tried) + 1, right=right, wrong=wrong)
        _book(meter, ask_again_messages(query, chunk.page_content, tried), question or "")
        if question is None:
            raise NoQuestion(f"no sub-question of {query!r:.100} is left: all titles were asked about")
        return question


def _reply(verdict: Verdict) -> str:
    return json.dumps({"score": verdict.score, "next_query": verdict.next_query}, ensure_ascii=False)


def _book(meter: CallMeter, messages: Iterable[Message], *replies: str) -> None:
    """Record a call that a model would have made."""
    meter.record(
        kind="chat",
        model=SIMULATED,
        started=time.perf_counter(),
        prompt_tokens=message_tokens(messages),
        completion_tokens=sum(map(text_tokens, replies)),
    )
    meter.records[-1]["estimated"] = True


def _id_of(chunk: Document) -> str:
    return str(chunk.metadata.get("chunk_id", ""))
