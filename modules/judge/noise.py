"""Judgements and sub-questions of a chosen quality: pure functions of the truth, a seed and names.

A rating s of what is true is drawn from N(d'/2, 1), of what is not from N(-d'/2, 1), with d' = sqrt(2) * z(AUC), where
z is the inverse normal distribution function: the AUC of s is then as chosen. By Bayes' rule the log odds of the truth
are d' * s + logit(base rate); miscalibration multiplies them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Literal, TypeVar

from ..digests import json_digest
from ..errors import SettingsError

T = TypeVar("T")

_NORMAL = NormalDist()
_DRAWS = 2**53


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The quality of a judge in an experiment; ``noisy:auc=.8,scale=2`` in a spec.

    >>> Noise(auc=1.0).chunk("q", "c", gold=True)
    (True, 1.0)

    Raises:
        SettingsError: A value is not allowed.
    """

    auc: float = 1.0
    """P(a needed chunk is rated above another one), in [0.5, 1]; 1 is the oracle."""
    scale: float = 1.0
    """Factor on the log odds; below 1 is less sure, above 1 surer. Verdicts stay the same.

    1 is calibrated for queries with the base rates below, which are those of questions and not of sub-questions.
    """
    recall: float = 0.93
    """Share of the needed chunks that get a 1 or 2, in (0, 1)."""
    base: float = 0.3
    """Share of needed chunks among those found; 0.3 on HotpotQA's training questions with topk 5, 0.22 on MuSiQue's."""
    set_base: float = 0.5
    """Share of queries whose chunks suffice together; likewise 0.5 and 0.15."""
    batched: bool = False
    """Whether all chunks of a query are judged in one call, as a set."""
    writer: float = 1.0
    """Probability that a sub-question asks for what is missing, in [0, 1]; each further try is drawn anew."""
    retry: float | None = None
    """The same of further tries, given that those before did not; None as ``writer``, as if tries were independent."""
    sees_wrong_questions: bool = False
    """Whether a sub-question about a title that no question needs is held to be answered by nothing.

    A judge cannot know that from a sub-question and its passages; this says what could be gained if one did.
    """
    seed: int = 0

    def __post_init__(self) -> None:
        ranges = {
            "auc": 0.5 <= self.auc <= 1.0,
            "scale": 0.0 < self.scale < math.inf,
            "writer": 0.0 <= self.writer <= 1.0,
            "retry": self.retry is None or 0.0 <= self.retry <= 1.0,
            **{name: 0.0 < getattr(self, name) < 1.0 for name in ("recall", "base", "set_base")},
        }
        allowed = {"auc": "0.5 to 1", "scale": "above 0", "writer": "0 to 1", "retry": "0 to 1"}
        for name, holds in ranges.items():
            if not holds:
                raise SettingsError(
                    f"noisy: {name}={getattr(self, name)!r} is not allowed. "
                    f"Allowed: {allowed.get(name, 'above 0, below 1')}."
                )

    def fingerprint(self) -> dict[str, str]:
        """Return all parameters that are set."""
        return {name: str(value) for name, value in asdict(self).items() if value is not None}

    def of_repeat(self, repeat: int) -> Noise:
        """Return the same quality with other errors for each repeat; repeat 0 keeps these."""
        return self if repeat == 0 else replace(self, seed=int.from_bytes(json_digest([self.seed, repeat])[:6]))

    def chunk(self, query: str, chunk_id: str, *, gold: bool) -> tuple[bool, float]:
        """Return whether the judge holds a chunk to be needed, and its P(needed).

        The same query and chunk have the same noise in every search.
        """
        if self.auc == 1.0:
            return gold, float(gold)
        rating = self._rating(gold, "chunk", query, chunk_id)
        barred = self._distance / 2 + _NORMAL.inv_cdf(1.0 - self.recall)
        return rating >= barred, self._probability(rating, self.base)

    def together(self, query: str, chunk_ids: Iterable[str], *, complete: bool) -> tuple[bool, float]:
        """Return whether the judge holds chunks to suffice together, and its probability that they do."""
        if self.auc == 1.0:
            return complete, float(complete)
        rating = self._rating(complete, "set", query, *sorted(chunk_ids))
        p_suffices = self._probability(rating, self.set_base)
        return p_suffices > 0.5, p_suffices

    def question(self, query: str, chunk_id: str, attempt: int, *, right: Sequence[T], wrong: Sequence[T]) -> T | None:
        """Return the sub-question of a try, counted from 1: right with P ``writer`` or ``retry``, else wrong.

        Right ones come in their order; a wrong one is drawn. Where there is none of a kind, the other kind serves; None
        without any.
        """
        names = ("question", query, chunk_id, str(attempt))
        p_right = self.writer if attempt == 1 or self.retry is None else self.retry
        asks_right = _uniform(self.seed, "writer", *names) < p_right
        if right and (asks_right or not wrong):
            return right[0]
        return wrong[int(_uniform(self.seed, "wrong", *names) * len(wrong))] if wrong else None

    @property
    def _distance(self) -> float:
        return math.sqrt(2.0) * _NORMAL.inv_cdf(self.auc)

    def _rating(self, truth: bool, *names: str) -> float:
        return _NORMAL.inv_cdf(_uniform(self.seed, *names)) + (self._distance if truth else -self._distance) / 2

    def _probability(self, rating: float, base: float) -> float:
        odds = self.scale * (self._distance * rating + math.log(base / (1.0 - base)))
        return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0


def _uniform(seed: int, kind: Literal["chunk", "set", "writer", "wrong"] | str, *names: str) -> float:
    """Return a number in (0, 1) that the seed and the names decide."""
    drawn = json_digest([seed, kind, *names])
    return (int.from_bytes(drawn[:8]) % _DRAWS + 0.5) / _DRAWS
