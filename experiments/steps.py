"""Where evidence is lost on the way: each step of recorded searches, and what ideal parts would have kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judgetree.evaluation.calibration.judge_figures import auc
from judgetree.evaluation.calibration.reliability import calibration_error, reliability_bins

from .kept import QUESTION, KeptChunk, KeptQuestion
from .pages import table


def _root(question: KeptQuestion) -> tuple[KeptChunk, ...]:
    return question.by_query[QUESTION].chunks


def _held(chunks: Sequence[KeptChunk]) -> set[str]:
    return {key for chunk in chunks for key in chunk.documents}


def _missing(question: KeptQuestion) -> set[str]:
    return set(question.gold) - _held(_root(question))


def _finds(question: KeptQuestion, asked: str) -> set[str]:
    """Return the needed documents, missing before, that a sub-question finds."""
    found = question.by_query.get(asked)
    return _missing(question) & _held(found.chunks) if found else set()


def tries_of(questions: Sequence[KeptQuestion]) -> list[list[bool]]:
    """Return of each needed chunk of a search that misses some, whether each of its questions finds a missing one."""
    return [
        [bool(_finds(question, asked)) for asked in chunk.asks]
        for question in questions
        if _missing(question)
        for chunk in _root(question)
        if chunk.asks and set(chunk.documents) & set(question.gold)
    ]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step on the way to complete evidence."""

    name: str
    reached: int
    of: int


def funnel(questions: Sequence[KeptQuestion]) -> list[Step]:
    """Follow the questions whose first search misses a needed document, each as long as one passage leads on."""
    missing = [each for each in questions if _missing(each)]
    start = [each for each in missing if _needed(each)]
    kept = [each for each in start if any(chunk.score for chunk in _needed(each))]
    asked = [each for each in kept if any(chunk.asked_by_judge for chunk in _needed(each))]
    found = [each for each in asked if _covered(each, judged=False)]
    complete = [each for each in found if _covered(each, judged=True)]
    return [
        Step(name="the first search has all documents", reached=len(questions) - len(missing), of=len(questions)),
        Step(name="it misses some, and has one to ask from", reached=len(start), of=len(missing)),
        Step(name="the judge keeps such a one", reached=len(kept), of=len(start)),
        Step(name="and asks from it", reached=len(asked), of=len(kept)),
        Step(name="all sub-questions together find what is missing", reached=len(found), of=len(asked)),
        Step(name="and the judge keeps what they find", reached=len(complete), of=len(found)),
    ]


def _needed(question: KeptQuestion) -> list[KeptChunk]:
    return [chunk for chunk in _root(question) if set(chunk.documents) & set(question.gold)]


def _covered(question: KeptQuestion, *, judged: bool) -> bool:
    """Return whether the judge's sub-questions find what is missing, and with ``judged`` whether it is kept."""
    found: set[str] = set()
    for chunk in _root(question):
        if chunk.asked_by_judge and chunk.score == 1:
            hits = question.by_query[chunk.asks[0]].chunks
            useful = [each for each in hits if each.score != 0] or hits
            found |= _held(useful if judged else hits)
    return _missing(question) <= found


def judge_quality(questions: Sequence[KeptQuestion], *, root: bool) -> tuple[float, float, int]:
    """Return (AUC, expected calibration error, chunks) of P(needed), at the root or below it."""
    rated = [
        (chunk.p_needed, bool(set(chunk.documents) & set(question.gold)))
        for question in questions
        for query in question.queries
        if (query.query == QUESTION) == root
        for chunk in query.chunks
        if chunk.p_needed is not None
    ]
    gold, others = [p for p, is_gold in rated if is_gold], [p for p, is_gold in rated if not is_gold]
    error = calibration_error(reliability_bins([p for p, _ in rated], [float(is_gold) for _, is_gold in rated]))
    return auc(gold, others), error, len(rated)


def steps_table(questions: Sequence[KeptQuestion], ideal: Mapping[str, float]) -> str:
    """Return a line a step on the way to complete evidence."""
    lines = [[each.name, f"{each.reached} of {each.of}"] for each in funnel(questions)]
    tries = [each for each in tries_of(questions) if len(each) > 1]
    again = [each[1] for each in tries if not each[0]]
    lines.append(["second question right where the first was wrong", f"{sum(again)} of {len(again)}"])
    for name, root in (("first search", True), ("sub-questions", False)):
        area, error, chunks = judge_quality(questions, root=root)
        lines.append(
            [
                f"judge, {name}, of what the question needs: AUC; calibration error; passages",
                f"{area:.2f}; {error:.2f}; {chunks:,}",
            ]
        )
    lines += [
        [f"all evidence, {part}", f"{share * len(questions):.0f} of {len(questions)}"] for part, share in ideal.items()
    ]
    return table(["step", "reached"], lines)
