"""A recording judged anew by the noisy judge: verdicts come from gold and noise, questions from the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...modules.judge.noise import Noise
from .world import JudgedChunk, JudgedQuery, RecordedWorld


@dataclass
class NoisyWorld:
    """A recorded question under a judge of chosen quality, which alone sees the gold documents.

    A chunk is truly needed if it is of a gold document. The questions of chunks are those of the recording, whatever
    their verdicts there.
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
            known = self.recorded.judged(query)
            held = frozenset().union(*(each.keys for each in known.chunks)) if known.chunks else frozenset()
            chunks = tuple(self._chunk(query, each) for each in known.chunks)
            suffices, p_suffices = None, None
            if self.noise.batched:
                ids = [each.chunk_id for each in chunks]
                suffices, p_suffices = self.noise.together(query, ids, complete=self.gold <= held)
            self._judged[query] = JudgedQuery(chunks=chunks, set_suffices=suffices, p_suffices=p_suffices)
        return self._judged[query]

    def asked_again(self, query: str, chunk_id: str, tried: Sequence[str]) -> str | None:
        """Return the recorded question of the next try."""
        return self.recorded.asked_again(query, chunk_id, tried)

    def _chunk(self, query: str, chunk: JudgedChunk) -> JudgedChunk:
        is_gold = bool(chunk.keys & self.gold)
        is_needed, p_needed = self.noise.chunk(query, chunk.chunk_id, gold=is_gold)
        suffices = is_needed and not self.noise.batched and len(self.gold) == 1
        return replace(
            chunk,
            verdict="judged",
            score=2 if suffices else int(is_needed),
            confidence=None,
            p_needed=p_needed,
            is_calibrated=True,
        )
