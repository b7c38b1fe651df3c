"""A recording judged anew by the noisy judge: verdicts come from gold and noise, questions from the recording."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...modules.judge.noise import Noise
from .world import JudgedChunk, JudgedQuery, Needs, NotRecorded, RecordedWorld


@dataclass
class NoisyWorld:
    """A recorded question under a judge of chosen quality, which alone sees the gold documents.

    A chunk is truly needed if its document is one that its query needs; it suffices if the query needs nothing else,
    and a set does if it holds all that is needed. The question needs its gold documents. A sub-question needs what its
    recording knew, if a noisy judge made that; else what the query needs that asks it, without the documents of the
    chunk that asks. Of several that ask it the first counts, by depth and rank.

    Each chunk asks what was recorded for it, whatever its verdict there, and judging takes the calls of a model.
    """

    recorded: RecordedWorld
    noise: Noise
    _judged: dict[str, JudgedQuery] = field(default_factory=dict)

    @property
    def question(self) -> str:
        """The question."""
        return self.recorded.question

    @property
    def gold(self) -> frozenset[str]:
        """Keys of the documents that the answer needs."""
        return self.recorded.gold

    def judged(self, query: str) -> JudgedQuery:
        """Return a recorded query with noisy verdicts."""
        if query not in self._judged:
            self._judged[query] = self._judge(query, self.recorded.judged(query))
        return self._judged[query]

    def asked_again(self, query: str, chunk_id: str, tried: Sequence[str]) -> str | None:
        """Return the recorded question of the next try."""
        return self.recorded.asked_again(query, chunk_id, tried)

    def _judge(self, query: str, known: JudgedQuery) -> JudgedQuery:
        needs, is_batched = self._needs(query, known), self.noise.batched
        suffices, p_suffices = None, None
        if is_batched:
            held = frozenset[str]().union(*(each.keys for each in known.chunks))
            is_complete = bool(needs) and all(need & held for need in needs)
            ids = [each.chunk_id for each in known.chunks]
            suffices, p_suffices = self.noise.together(query, ids, complete=is_complete)
        chunks = tuple(self._chunk(query, each, needs) for each in known.chunks)
        judged = JudgedQuery(chunks=chunks, set_suffices=suffices, p_suffices=p_suffices)
        return judged.as_by_a_model(batched=is_batched)

    def _chunk(self, query: str, chunk: JudgedChunk, needs: Needs) -> JudgedChunk:
        is_gold = any(need & chunk.keys for need in needs)
        is_needed, p_needed = self.noise.chunk(query, chunk.chunk_id, gold=is_gold)
        suffices = is_needed and not self.noise.batched and len(needs) == 1
        return replace(
            chunk,
            verdict="judged",
            score=2 if suffices else int(is_needed),
            confidence=None,
            p_needed=p_needed,
            is_calibrated=True,
            next_query=next(iter(self.recorded.questions_of(query, chunk.chunk_id)), ""),
        )

    def _needs(self, query: str, known: JudgedQuery) -> Needs:
        if known.needs is None:
            return self._by_asker.get(query, ())
        return () if known.is_wrong and self.noise.sees_wrong_questions else known.needs

    @cached_property
    def _by_asker(self) -> dict[str, Needs]:
        """What each query needs by what the first one that asks it needs."""
        needs: dict[str, Needs] = {self.question: tuple(frozenset({key}) for key in sorted(self.gold))}
        waiting = deque(needs)
        while waiting:
            asker = waiting.popleft()
            for chunk in self._chunks_of(asker):
                left = tuple(need for need in needs[asker] if not need & chunk.keys)
                for question in self.recorded.questions_of(asker, chunk.chunk_id):
                    if question not in needs:
                        needs[question] = left
                        waiting.append(question)
        return needs

    def _chunks_of(self, query: str) -> Sequence[JudgedChunk]:
        try:
            return self.recorded.judged(query).chunks
        except NotRecorded:
            return ()
