"""The judge that knows: verdicts from gold supporting facts, for upper bounds and for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..calls.messages import version_of
from ..calls.usage import CallMeter
from .contract import Verdict

if TYPE_CHECKING:
    from langchain_core.documents import Document


@dataclass(frozen=True, kw_only=True)
class GoldFact:
    """One fact that a query needs."""

    quote: str
    """A passage that holds it, word for word but for white space."""
    question: str
    """The question that this fact alone answers."""
    remaining_question: str = ""
    """What is still to be asked once this fact and those before it are known; ``""`` where each stands alone."""


def oracle_verdict(facts: Sequence[GoldFact], passage: str, *, expand: bool = True) -> Verdict:
    """Return the verdict on ``passage`` for a query that needs ``facts``, in this order: all held 2, some 1, none 0.

    A 1 asks what remains, if the passage holds the first facts and no other; else for the first fact that it lacks.
    """
    text = _folded(passage)
    held = [_folded(fact.quote) in text for fact in facts]
    if not any(held):
        return Verdict(status="judged", score=0, confidence=1.0, reason="holds none of the gold facts")
    if all(held):
        return Verdict(status="judged", score=2, confidence=1.0, reason="holds all of the gold facts")
    first_missing = held.index(False)
    is_prefix = first_missing == sum(held)
    remaining = facts[first_missing - 1].remaining_question if is_prefix else ""
    return Verdict(
        status="judged",
        score=1,
        confidence=1.0,
        reason=f"holds {sum(held)} of {len(facts)} gold facts",
        next_query=(remaining or facts[first_missing].question) if expand else "",
    )


class OracleJudge:
    """Scores by the gold facts of each known query: all of them in the chunk 2, some 1, none 0. Calls no model."""

    def __init__(self, facts: Mapping[str, Sequence[GoldFact]]) -> None:
        """``facts``: for each query, and each sub-question that may be asked, its facts in the order they are needed.

        For a query that is not there every chunk scores 0.
        """
        self._facts = {_folded(query): tuple(gold) for query, gold in facts.items()}

    def fingerprint(self) -> dict[str, str]:
        """Kind, and a digest of the gold facts."""
        return {"kind": "oracle", "facts": version_of(repr(sorted(self._facts.items())))}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """See ``judge.Judge.judge``; ``meter`` is not used."""
        return oracle_verdict(self._facts.get(_folded(query), ()), chunk.page_content, expand=expand)


def _folded(text: str) -> str:
    return " ".join(text.split())
