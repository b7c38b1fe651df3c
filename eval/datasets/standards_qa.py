"""Typed rows of ``standards_qa.jsonl``: questions with the gold facts of their answers, and their loader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeVar

from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError, with_config

from ...modules.errors import LoadingError, faults_of
from ...modules.judge.oracle import GoldFact
from ...modules.reading.regular_files import MAX_DATA_BYTES, read_named_text

QuestionType = Literal["single", "2hop", "3hop", "compare", "unanswerable"]
Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

_HOPS: dict[QuestionType, int] = {"single": 1, "2hop": 2, "3hop": 3}
_CHAINED: tuple[QuestionType, ...] = ("2hop", "3hop")
_FAULTS_SHOWN = 10


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class SupportingFact:
    """One hop: a quote from a document, and the single-hop question that it answers."""

    source: Filled
    """Path of the document, relative to the index root."""
    quote: Filled
    """The words that state the fact; line breaks may differ from the document's."""
    question: Filled
    answer: Filled
    remaining_question: str = ""
    """The question that remains open after this quote and the earlier ones, with the row's answer.

    ``""`` for the last hop, and for hops that do not build on each other.
    """


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class Question:
    """One row of a data set.

    Raises:
        ValueError: The supporting facts do not fit the type (number of hops, remaining questions), or an answerable
            question has no answer.
    """

    id: Filled
    lang: Filled
    question: Filled
    answer: str
    """Gold answer; may be ``""`` if the question is unanswerable."""
    aliases: tuple[str, ...] = ()
    """Other accepted answers."""
    type: QuestionType
    supporting: tuple[SupportingFact, ...] = ()
    """Gold facts, in hop order."""

    def __post_init__(self) -> None:
        if problem := evidence_problem(self.type, self.answer, self.supporting):
            raise ValueError(problem)

    @property
    def is_chained(self) -> bool:
        """Whether each hop needs the previous one."""
        return self.type in _CHAINED


def evidence_problem(kind: QuestionType, answer: str, supporting: Sequence[SupportingFact]) -> str:
    """Return why answer and supporting facts do not fit a question of this type; ``""`` if they do."""
    hops = len(supporting)
    if kind != "unanswerable" and not answer.strip():
        return "the answer is empty; only an unanswerable question may have none"
    if kind in _HOPS and hops != _HOPS[kind]:
        return f"type {kind} needs {_HOPS[kind]} supporting facts, got {hops}"
    if kind == "compare" and hops < 2:
        return f"type compare needs at least 2 supporting facts, got {hops}"
    if kind in _CHAINED and not all(fact.remaining_question.strip() for fact in supporting[:-1]):
        return "every hop of a chain but the last needs a remaining_question"
    if supporting and kind != "unanswerable" and supporting[-1].remaining_question:
        return "the last hop leaves nothing open: it must not have a remaining_question"
    return ""


@dataclass(frozen=True, kw_only=True)
class KnownQuestion:
    """A question with known gold facts: a row's own, or one derived from it."""

    question: str
    answer: str
    facts: tuple[SupportingFact, ...]
    """Gold facts in hop order; empty if the question is unanswerable."""


def known_questions(row: Question) -> Iterator[KnownQuestion]:
    """Yield the row's question, the question of each hop, and the remaining question after each hop of a chain."""
    if row.type == "unanswerable":
        yield KnownQuestion(question=row.question, answer="", facts=())
        return
    yield KnownQuestion(question=row.question, answer=row.answer, facts=row.supporting)
    for hop, fact in enumerate(row.supporting, start=1):
        yield KnownQuestion(question=fact.question, answer=fact.answer, facts=(fact,))
        if fact.remaining_question:
            yield KnownQuestion(question=fact.remaining_question, answer=row.answer, facts=row.supporting[hop:])


def gold_of(facts: Iterable[SupportingFact]) -> tuple[GoldFact, ...]:
    """Convert supporting facts to the oracle judge's, in the same order."""
    return tuple(
        GoldFact(quote=fact.quote, question=fact.question, remaining_question=fact.remaining_question) for fact in facts
    )


def gold_facts(rows: Iterable[Question]) -> dict[str, tuple[GoldFact, ...]]:
    """Collect the gold facts of every known question of the rows, as ``OracleJudge`` takes them."""
    return {known.question: gold_of(known.facts) for row in rows for known in known_questions(row)}


_ROW = TypeAdapter(Question)


class Identified(Protocol):
    """Protocol of a row with an id."""

    @property
    def id(self) -> str:
        """Id of the row, unique in its file."""


T = TypeVar("T", bound=Identified)


def load_standards_qa(path: Path | str) -> list[Question]:
    """Read the questions of a JSON Lines file, in file order; blank lines are skipped.

    Raises:
        LoadingError: The file cannot be read, has no question, or has malformed rows; the message lists the first ten
            by line number.
    """
    return load_faultless(path, _ROW, noun="question")


def load_faultless(path: Path | str, adapter: TypeAdapter[T], *, noun: str) -> list[T]:
    """Read the rows of a JSON Lines file with ``adapter``, in file order; blank lines are skipped.

    Error messages call a row ``noun``.

    Raises:
        LoadingError: The file cannot be read, has no row, or has malformed rows; the message lists the first ten by
            line number.
    """
    file = Path(path)
    advice = "Give a UTF-8 JSON Lines file."
    text = read_named_text(file, what=f"{noun}s from", advice=advice, max_bytes=MAX_DATA_BYTES)
    rows, faults = _parse(text.split("\n"), adapter)
    if faults:
        shown = "\n".join(f"  line {number}: {fault}" for number, fault in faults[:_FAULTS_SHOWN])
        more = f"\n  and {len(faults) - _FAULTS_SHOWN} more" if len(faults) > _FAULTS_SHOWN else ""
        raise LoadingError(f"Malformed rows in {file}: {len(faults)}. Correct them:\n{shown}{more}")
    if not rows:
        raise LoadingError(f"{file} has no {noun}; give a JSON Lines file with one {noun} per line.")
    return rows


def _parse(lines: list[str], adapter: TypeAdapter[T]) -> tuple[list[T], list[tuple[int, str]]]:
    rows: list[T] = []
    faults: list[tuple[int, str]] = []
    first_line: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = adapter.validate_json(line)
        except ValidationError as error:
            faults.append((number, "; ".join(faults_of(error, whole="row"))))
            continue
        if first_line.setdefault(row.id, number) != number:
            faults.append((number, f"id {row.id!r} is already used in line {first_line[row.id]}"))
        rows.append(row)
    return rows, faults
