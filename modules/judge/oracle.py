"""The oracle judge: verdicts from gold supporting facts, for upper bounds and for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..calls.messages import version_of
from ..calls.usage import CallMeter
from .contract import Score, Verdict

if TYPE_CHECKING:
    from langchain_core.documents import Document


@dataclass(frozen=True, kw_only=True)
class GoldFact:
    """One fact that a query needs.

    >>> GoldFact(quote="KS-1 is class Delta.", question="Which class is KS-1?").question
    'Which class is KS-1?'
    """

    quote: str
    """Text that a passage must contain, white space aside."""
    question: str
    """The question that this fact alone answers."""
    remaining_question: str = ""
    """The question that is left once this fact and those before it are known; ``""`` if facts are independent."""


def oracle_verdict(facts: Sequence[GoldFact], passage: str, *, expand: bool = True) -> Verdict:
    """Return the verdict on ``passage`` by the facts in it: all give 2, some 1, none 0.

    A 1 has the remaining question if the passage holds exactly the first facts, else that of its first missing fact.
    """
    text = _folded(passage)
    held = [_folded(fact.quote) in text for fact in facts]
    if not any(held):
        return _certain(0, "holds none of the gold facts")
    if all(held):
        return _certain(2, "holds all of the gold facts")
    first_missing = held.index(False)
    is_prefix = first_missing == sum(held)
    remaining = facts[first_missing - 1].remaining_question if is_prefix else ""
    verdict = _certain(1, f"holds {sum(held)} of {len(facts)} gold facts")
    return replace(verdict, next_query=remaining or facts[first_missing].question) if expand else verdict


def _certain(score: Score, reason: str) -> Verdict:
    return Verdict(
        status="judged", score=score, confidence=1.0, p_needed=float(score > 0), is_calibrated=True, reason=reason
    )


class OracleJudge:
    """A judge that scores by the gold facts of each query and calls no model.

    >>> facts = {"Who wrote it?": [GoldFact(quote="Cao Xueqin wrote it.", question="Who wrote it?")]}
    >>> OracleJudge(facts).fingerprint()["kind"]
    'oracle'
    """

    def __init__(self, facts: Mapping[str, Sequence[GoldFact]]) -> None:
        """Judge by the facts of each query and sub-question, given in the order in which they are needed.

        For an unknown query every chunk scores 0.
        """
        self._facts = {_folded(query): tuple(gold) for query, gold in facts.items()}

    def fingerprint(self) -> dict[str, str]:
        """Return the kind and a digest of the gold facts."""
        return {"kind": "oracle", "facts": version_of(repr(sorted(self._facts.items())))}

    def expected_calls(self, chunks: int) -> int:
        """Return 0."""
        return 0

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """Return the verdict by the gold facts of ``query``; ``meter`` is not used."""
        return oracle_verdict(self._facts.get(_folded(query), ()), chunk.page_content, expand=expand)


def _folded(text: str) -> str:
    return " ".join(text.split())
