"""What the search of a thread found, as policies and stops see it; the same live and in replays."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class FoundChunk(NamedTuple):
    """A chunk with what its verdict says, as far as searches go by it."""

    chunk_id: str
    score: int | None
    confidence: float | None = None
    p_needed: float | None = None

    @property
    def sureness(self) -> float:
        """The confidence of its score, above 0; 1 where the judge gives none."""
        return 1.0 if self.confidence is None else max(self.confidence, sys.float_info.min)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the search of a thread found, once its chunks are judged."""

    needed: tuple[tuple[str, float], ...] = ()
    """Chunks held to be needed, each with its P(needed), by rank."""
    p_sufficient_chunk: float = 0.0
    """The highest confidence of a chunk with score 2, 1 for one without; 0 where no chunk has that score."""
    set_suffices: bool | None = None
    """Whether the judge says that the chunks answer the query together; None if it does not say."""
    p_suffices: float | None = None
    """Its probability that they do; None if it gives none."""

    @property
    def has_sufficient_chunk(self) -> bool:
        """Whether a chunk has score 2."""
        return self.p_sufficient_chunk > 0

    @property
    def suffices(self) -> bool:
        """Whether a chunk, or their set, answers the query."""
        return self.has_sufficient_chunk or self.set_suffices is True

    @classmethod
    def of(
        cls, chunks: Iterable[FoundChunk], *, set_suffices: bool | None = None, p_suffices: float | None = None
    ) -> Findings:
        """Return the findings of a query from its judged chunks, which come by rank.

        >>> Findings.of([FoundChunk("a", score=1), FoundChunk("b", score=2, confidence=0.9)])
        Findings(needed=(('a', 0.5),), p_sufficient_chunk=0.9, set_suffices=None, p_suffices=None)
        """
        judged = tuple(chunks)
        return cls(
            needed=tuple(
                (each.chunk_id, 0.5 if each.p_needed is None else each.p_needed) for each in judged if each.score == 1
            ),
            p_sufficient_chunk=max((each.sureness for each in judged if each.score == 2), default=0.0),
            set_suffices=set_suffices,
            p_suffices=p_suffices,
        )


NOTHING_FOUND = Findings()
