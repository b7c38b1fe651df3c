"""The contract of judges: verdicts, the protocol, and the check of a judge's verdict.

Each kind has its own file: ``generated`` (the model writes its verdict as JSON), ``logprob`` (the probability of yes
against no) and ``oracle`` (gold supporting facts).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, cast, get_args

from ..calls.usage import CallMeter
from ..formats import storable
from ..reader.evidence import foreign_addresses, without_control_tokens

if TYPE_CHECKING:
    from langchain_core.documents import Document

Score = Literal[0, 1, 2]
VerdictStatus = Literal["judged", "unknown", "pending", "cancelled"]
"""judged: has a score. unknown: the judge failed. pending: not judged yet. cancelled: the budget was spent."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A judge's result for one chunk. An unknown verdict has no score: it neither stops nor expands the search.

    >>> Verdict(status="judged", score=1, next_query="Which oil does class Delta need?").score
    1
    >>> Verdict(status="unknown", problem="the reply was cut off").score is None
    True
    """

    status: VerdictStatus
    score: Score | None = None
    confidence: float | None = None
    """Probability in [0, 1] that the judge gives to its score; None if it gives none."""
    reason: str = ""
    next_query: str = ""
    """Supplementary question of a score of 1; ``""`` otherwise, or if none was usable."""
    problem: str = ""
    """Why a verdict is unknown, or why a score of 1 has no question; ``""`` otherwise."""
    budget_spent: bool = False
    """True where the problem is that the search tree may make no more model calls."""


class Judge(Protocol):
    """Scores one chunk for one query.

    ::

        class LengthJudge:
            def fingerprint(self):
                return {"kind": "length"}

            async def judge(self, query, chunk, *, meter, expand=True):
                return Verdict(status="judged", score=2 if len(chunk.page_content) > 500 else 0)
    """

    def fingerprint(self) -> dict[str, str]:
        """Return all that changes a verdict: kind, model, prompt version and thresholds."""
        ...

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """Judge ``chunk`` for ``query``; with ``expand=False`` (deepest level) no sub-question is needed.

        An unusable reply, or a failed last attempt, gives an unknown verdict.

        Raises:
            BudgetSpent: The search tree may make no more model calls.
            ModelSetupError: The judge's endpoint can serve no request; the question ends, and can be resumed.
        """
        ...


# "the text" may be the topic ("the text of Beowulf"), and Chinese pointers occur inside words (日本文学).
POINTER_INTO_PASSAGE = re.compile(
    r"\b(?:this|that|said|above|given)\s+(?:passage|text|document|paragraph|chunk|context)\b"
    r"|\bthe\s+(?:chunk\b|paragraph\b|passage\b(?!\s+of\b)|(?:text|document|context)\s*(?:[^\w\s]|$))"
    r"|^\W*(?:who|what|when|where|why|how|(?:in )?which \w+)\s+(?:is|are|was|were|did|does|do|has|have|had)\s+"
    r"(?:he|she|they|his|her|their|its)\b"
    r"|^\W*[他她它](?!人|山|乡)"
    r"|(?<![日基版样剧课])本文|(?<!应)该文|上文(?![化明学字献物])|(?<![中英日法德俄韩论古])文中|这段|该段",
    re.IGNORECASE,
)
LONGEST_SUB_QUESTION = 600
"""Most characters of a sub-question, which is part of every prompt of its sub-run."""


def sub_question_problem(next_query: str, query: str) -> str:
    """Return why ``next_query`` cannot be asked on its own, as a hint for a retry; ``""`` if it can."""
    if not next_query.strip():
        return "next_query is empty although the score is 1."
    if _normalised(next_query) == _normalised(query):
        return "next_query repeats the query instead of asking for the missing fact."
    if POINTER_INTO_PASSAGE.search(next_query):
        return "next_query points into the passage; it must be understood without it."
    return _steered_problem(next_query, query)


def _steered_problem(next_query: str, query: str) -> str:
    if len(next_query) > LONGEST_SUB_QUESTION:
        return f"next_query has {len(next_query)} characters; write one question of at most {LONGEST_SUB_QUESTION}."
    if len(next_query.strip().splitlines()) > 1 or without_control_tokens(next_query) != next_query:
        return "next_query must be one line of plain text."
    if foreign_addresses(next_query, query):
        return "next_query holds an address that is not in the query; ask for the missing fact in words."
    return ""


def _normalised(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()


def checked_verdict(given: object) -> Verdict:
    """Return the verdict with plain Python numbers and storable texts; an unusable one becomes unknown, with a problem.

    Numbers of numpy and whole floats are converted. A score must be 0, 1 or 2, a confidence None or in [0, 1].

    >>> checked_verdict(Verdict(status="judged", score=3)).problem
    'The judge gave score 3. Allowed: 0, 1, 2.'
    """
    if not isinstance(given, Verdict):
        return _unknown(f"{type(given).__name__} in place of a Verdict", "judgetree.Verdict")
    if given.status not in get_args(VerdictStatus):
        return _unknown(f"status {given.status!r}", ", ".join(get_args(VerdictStatus)))
    for name in ("reason", "next_query", "problem"):
        if not isinstance(text := getattr(given, name), str):
            return _unknown(f"{name} {text!r}", "text")
    score = _number(given.score)
    if given.status == "judged" and score not in get_args(Score):
        return _unknown(f"score {given.score!r}", "0, 1, 2")
    confidence = _number(given.confidence)
    if given.confidence is not None and (confidence is None or not 0.0 <= confidence <= 1.0):
        return _unknown(f"confidence {given.confidence!r}", "None, or 0 to 1")
    next_query, problem = storable(given.next_query), storable(given.problem)
    if len(next_query) > LONGEST_SUB_QUESTION:
        next_query, problem = "", _steered_problem(next_query, "")
    whole = cast(Score, int(cast(float, score))) if given.status == "judged" else None
    return Verdict(
        status=given.status,
        score=whole,
        confidence=confidence,
        reason=storable(given.reason),
        next_query=next_query,
        problem=problem,
        budget_spent=given.budget_spent is True,
    )


def _number(value: object) -> float | None:
    """Convert to a Python float; None for text, booleans, NaN and anything else that is no number."""
    if isinstance(value, str | bytes | bool) or type(value).__name__ == "bool":
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _unknown(what: str, allowed: str) -> Verdict:
    return Verdict(status="unknown", problem=f"The judge gave {storable(what)[:200]}. Allowed: {allowed}.")
