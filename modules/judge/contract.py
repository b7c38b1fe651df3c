"""The contract of judges: verdicts, the protocols, and the check of a judge's verdicts.

Each kind has its own file: ``generated`` (the model writes its verdict as JSON), ``logprob`` (the probability of yes
against no) and ``oracle`` (gold supporting facts).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast, get_args

from typing_extensions import TypeIs

from ..calls.usage import CallMeter
from ..errors import BudgetSpent, LimitName, SettingsError, UserError
from ..reader.evidence import foreign_addresses, without_control_tokens
from ..storage.texts import storable

if TYPE_CHECKING:
    from langchain_core.documents import Document

T = TypeVar("T")

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
    p_needed: float | None = None
    """Probability in [0, 1] that the passage holds a fact that the query needs; None if the judge gives none."""
    is_calibrated: bool = False
    """Whether ``p_needed`` was fitted on judgements with known answers, so that it is right that often."""
    reason: str = ""
    next_query: str = ""
    """Supplementary question of a score of 1; ``""`` otherwise, or if none was usable."""
    problem: str = ""
    """Why a verdict is unknown, or why a score of 1 has no question; ``""`` otherwise."""
    budget_spent: bool | LimitName = False
    """The limit of the search tree that is the problem, True for its model calls; False where none is."""


@dataclass(frozen=True, kw_only=True)
class SetVerdict:
    """A judge's result for all chunks of a query.

    >>> SetVerdict(verdicts=(Verdict(status="judged", score=1),), suffices=True).verdicts[0].score
    1
    """

    verdicts: tuple[Verdict, ...]
    """In the order of the chunks."""
    suffices: bool | None = None
    """Whether the chunks together answer the query; None if the judge does not say."""
    p_suffices: float | None = None
    """Probability in [0, 1] that they do; None if the judge gives none."""


class Judge(Protocol):
    """Scores one chunk for one query, the same each time.

    It may say its cost by ``expected_calls``, as a ``SetJudge`` does, and by ``is_random = True`` that its scores vary.

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


class SetJudge(Protocol):
    """Scores all chunks of a query together, and says whether they suffice; ``judge`` is then not called.

    ::

        class TwoAreEnough:
            def fingerprint(self):
                return {"kind": "two"}

            def expected_calls(self, chunks):
                return 0

            async def judge_set(self, query, chunks, *, meter, expand=True):
                verdicts = tuple(Verdict(status="judged", score=1) for chunk in chunks)
                return SetVerdict(verdicts=verdicts, suffices=len(chunks) > 1)
    """

    def fingerprint(self) -> dict[str, str]:
        """Return all that changes a verdict: kind, model, prompt version and thresholds."""
        ...

    def expected_calls(self, chunks: int) -> int:
        """Return the model calls that judging this many chunks of a query usually takes; the budget reserves them."""
        ...

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        """Judge ``chunks``, of which there is at least one, for ``query``; ``expand`` and errors as in ``Judge.judge``.

        A call about one chunk is made with the meter of ``about``.
        """
        ...


AnyJudge = Judge | SetJudge


def judges_sets(judge: AnyJudge) -> TypeIs[SetJudge]:
    """Return whether a judge takes all chunks of a query at once."""
    return hasattr(judge, "judge_set")


def is_judge(given: object) -> TypeIs[AnyJudge]:
    """Return whether an object has the methods of a ``Judge`` or a ``SetJudge``."""
    named = [name for name in ("fingerprint", "judge", "judge_set") if callable(getattr(given, name, None))]
    return not isinstance(given, type) and "fingerprint" in named and len(named) > 1


def may_be_judge(given: object) -> bool:
    """Return whether an object is a judge, or what a class or function makes may be one, as far as it can be seen.

    A class that lacks a method may still set it in ``__init__``, or find it by ``__getattr__``.
    """
    if inspect.isroutine(given) or isinstance(given, functools.partial) or hasattr(given, "__getattr__"):
        return True
    if not isinstance(given, type):
        return is_judge(given)
    codes = (getattr(vars(each).get("__init__"), "__code__", None) for each in given.__mro__)
    named = {name for code in codes if code is not None for name in code.co_names}
    named |= {name for name in ("fingerprint", "judge", "judge_set") if hasattr(given, name)}
    return "fingerprint" in named and not named.isdisjoint(("judge", "judge_set"))


async def judge_one(judge: AnyJudge, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
    """Return the checked verdict of any judge on one chunk; errors as in ``Judge.judge``."""
    if not judges_sets(judge):
        return checked_verdict(await judge.judge(query, chunk, meter=meter, expand=expand))
    given = await judge.judge_set(query, [chunk], meter=meter, expand=expand)
    return checked_set_verdict(given, 1).verdicts[0]


@contextmanager
def about(chunk: Document, meter: CallMeter) -> Iterator[CallMeter]:
    """Give a meter for calls about one chunk, which may be made beside others; its records then join ``meter``."""
    own = replace(meter, chunk_id=str(chunk.metadata.get("chunk_id", "")), records=[])
    try:
        yield own
    finally:
        meter.records.extend(own.records)


async def judge_each(
    judge: AnyJudge, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
) -> list[Verdict]:
    """Return the checked verdict on each chunk, judged one by one and all at once; cancelled without a call left.

    Other errors are raised once all have ended.
    """

    async def one(chunk: Document) -> Verdict:
        with about(chunk, meter) as own:
            return await judge_one(judge, query, chunk, meter=own, expand=expand)

    given = await asyncio.gather(*map(one, chunks), return_exceptions=True)
    return raised_or_all(
        [
            Verdict(status="cancelled", problem=str(each), budget_spent=each.limit)
            if isinstance(each, BudgetSpent)
            else each
            for each in given
        ]
    )


def raised_or_all(given: Sequence[T | BaseException]) -> list[T]:
    """Return what coroutines returned, in their order, or raise the first error, those of users before others."""
    failed = [each for each in given if isinstance(each, BaseException)]
    if failed:
        raise next((each for each in failed if isinstance(each, UserError)), failed[0])
    return [each for each in given if not isinstance(each, BaseException)]


def expected_calls(judge: AnyJudge, chunks: int) -> int:
    """Return the model calls that judging ``chunks`` chunks of a query usually takes; one each if the judge says none.

    Raises:
        SettingsError: The judge gives no whole number from 0 on.
    """
    own = getattr(judge, "expected_calls", None)
    if own is None:
        return chunks
    expected = own(chunks)
    if isinstance(expected, bool) or not isinstance(expected, int) or expected < 0:
        raise SettingsError(f"The judge expects {expected!r:.80} calls for {chunks} chunks. Allowed: 0, 1, 2, ….")
    return expected


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


def usable_question(next_query: str, query: str, *, cut_off: bool = False) -> tuple[str, str]:
    """Return the question and ``""``, or ``""`` and why it cannot be asked; the last of a ``cut_off`` reply cannot.

    >>> usable_question(" Which oil does class Delta need? ", "Which oil does the hoist need?")
    ('Which oil does class Delta need?', '')
    """
    question = next_query.strip()
    problem = "It was cut off; write a shorter one." if cut_off else sub_question_problem(question, query)
    return ("", problem) if problem else (question, "")


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

    Numbers of numpy and whole floats are converted. A score must be 0, 1 or 2, a probability None or in [0, 1].

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
    for name in ("confidence", "p_needed"):
        if not _is_probability(getattr(given, name)):
            return _unknown(f"{name} {getattr(given, name)!r}", "None, or 0 to 1")
    next_query, problem = storable(given.next_query), storable(given.problem)
    if len(next_query) > LONGEST_SUB_QUESTION:
        next_query, problem = "", _steered_problem(next_query, "")
    whole = cast(Score, int(cast(float, score))) if given.status == "judged" else None
    return Verdict(
        status=given.status,
        score=whole,
        confidence=_number(given.confidence),
        p_needed=_number(given.p_needed),
        is_calibrated=_is_bool(given.is_calibrated) and bool(given.is_calibrated),
        reason=storable(given.reason),
        next_query=next_query,
        problem=problem,
        budget_spent=given.budget_spent if given.budget_spent in (True, *get_args(LimitName)) else False,
    )


def checked_set_verdict(given: object, chunks: int) -> SetVerdict:
    """Return the verdict on a set with each chunk's verdict checked; an unusable one makes all of them unknown.

    >>> checked_set_verdict(SetVerdict(verdicts=()), 1).verdicts[0].problem
    'The judge gave 0 verdicts. Allowed: one for each of the 1 chunks.'
    """
    if not isinstance(given, SetVerdict):
        unknown = _unknown(f"{type(given).__name__} in place of a SetVerdict", "judgetree.SetVerdict")
        return SetVerdict(verdicts=(unknown,) * chunks)
    verdicts = tuple(given.verdicts) if isinstance(given.verdicts, Sequence) else ()
    if len(verdicts) != chunks:
        unknown = _unknown(f"{len(verdicts)} verdicts", f"one for each of the {chunks} chunks")
        return SetVerdict(verdicts=(unknown,) * chunks)
    p_suffices = _number(given.p_suffices) if _is_probability(given.p_suffices) else None
    suffices = bool(given.suffices) if _is_bool(given.suffices) else None
    return SetVerdict(verdicts=tuple(map(checked_verdict, verdicts)), suffices=suffices, p_suffices=p_suffices)


def _is_probability(value: object) -> bool:
    number = _number(value)
    return value is None or (number is not None and 0.0 <= number <= 1.0)


def _is_bool(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # numpy's own is no bool


def _number(value: object) -> float | None:
    """Convert to a Python float; None for text, booleans, NaN and anything else that is no number."""
    if isinstance(value, str | bytes) or _is_bool(value):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _unknown(what: str, allowed: str) -> Verdict:
    return Verdict(status="unknown", problem=f"The judge gave {storable(what)[:200]}. Allowed: {allowed}.")
