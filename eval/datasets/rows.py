"""What the loaders of data sets share: rows with their numbers, paragraphs with stable keys, digests, and the choice
of questions.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError

from ...modules.errors import LoadingError, SettingsError, faults_of
from ...modules.index.file_parsers import clean_text
from ...modules.index.folder_scan import scan_files
from ...modules.language import cjk_share, language_of
from .questions import CorpusDocument, Dataset, EvalQuestion

logger = logging.getLogger(__name__)

_SHOWN = 10
"""Malformed rows, or ids, that a message names."""
_FAULTS_OF_A_ROW = 3
_KEY_DIGITS = 12

T = TypeVar("T")
_R = TypeVar("_R")


def _cleaned(value: object) -> object:
    return clean_text(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_cleaned)]
"""A string of a data set file, without what databases and UTF-8 refuse."""
# The constraints stand next to str: behind the validator, pydantic would measure the length before it strips.
Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), BeforeValidator(_cleaned)]
"""A ``Text`` without white space around it, and not empty."""


class DatasetRow(BaseModel):
    """A row as it stands in a file: unknown keys are passed over, and numbers may stand for strings (ids, answers)."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


@dataclass(frozen=True, kw_only=True)
class PooledRow:
    """What one row gives: its question, and the paragraphs that it brings into the corpus."""

    question: EvalQuestion
    documents: tuple[CorpusDocument, ...] = ()


@dataclass(kw_only=True)
class RowReader:
    """Reads one file row by row, and keeps what is wrong with the rows that it leaves out.

    A UTF-8 byte order mark, CRLF line ends and blank lines are tolerated.
    """

    file: Path
    malformed: list[tuple[int, str]] = field(default_factory=list)
    """(row number, what is wrong) in file order. Rows count from 1 on: lines, blank ones included, or list items."""
    accepted: int = 0

    def rows(self, read: Callable[[object], T], *, key: Callable[[T], Hashable]) -> Iterator[T]:
        """Rows of a JSON list or of JSON Lines in file order, as ``read`` understands them.

        JSON Lines are read a line at a time; a JSON list is read whole.

        Args:
            read: Makes a value of a row's JSON; a ValueError says what is wrong with the row.
            key: What no two rows may share; the later one is malformed.

        Raises:
            LoadingError: The file cannot be read, or is a JSON list with an error of syntax.
        """
        if self._is_list():
            yield from self._taken(enumerate(self._list(), start=1), read, key)
        else:
            yield from self.lines(lambda line: read(parse_json(line)), key=key)

    def lines(self, read: Callable[[str], T], *, key: Callable[[T], Hashable]) -> Iterator[T]:
        """Like ``rows``, for a file whose rows are lines of text. Blank lines are passed over.

        Raises:
            LoadingError: The file cannot be read.
        """
        yield from self._taken(self._lines(), lambda line: read(line.decode("utf-8")), key)

    def checked(self) -> tuple[tuple[int, str], ...]:
        """The malformed rows, once every row is read; some are logged as a warning.

        Raises:
            LoadingError: There is not one good row. The message names the first ten and what is wrong with them.
        """
        if self.accepted and self.malformed:
            number, fault = self.malformed[0]
            counts = len(self.malformed), self.accepted + len(self.malformed)
            logger.warning("Left out %d of %d rows of %s; the first is row %d: %s", *counts, self.file, number, fault)
        if not self.accepted and not self.malformed:
            raise LoadingError(f"{self.file} holds no row. Name a file that has some.")
        if not self.accepted:
            shown = "\n".join(f"  row {number}: {fault}" for number, fault in self.malformed[:_SHOWN])
            raise LoadingError(
                f"All rows of {self.file} are malformed ({len(self.malformed)}). Is it in the format that was named?\n"
                + shown
            )
        return tuple(self.malformed)

    def _taken(
        self, numbered: Iterable[tuple[int, _R]], read: Callable[[_R], T], key: Callable[[T], Hashable]
    ) -> Iterator[T]:
        first_row: dict[Hashable, int] = {}
        for number, raw in numbered:
            try:
                row = read(raw)
            except ValueError as error:  # pydantic's, json's and UnicodeDecodeError are such
                self.malformed.append((number, explain(error)))
                continue
            if first_row.setdefault(key(row), number) != number:
                self.malformed.append((number, f"{key(row)!r} was already in row {first_row[key(row)]}"))
                continue
            self.accepted += 1
            yield row

    def _is_list(self) -> bool:
        if self.file.suffix.lower() in (".jsonl", ".ndjson"):
            return False
        return next((line.lstrip().startswith(b"[") for _, line in self._lines()), False)

    def _list(self) -> list[object]:
        try:
            content = parse_json(self.file.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise LoadingError(f"Cannot read {self.file}: {error}. Give a UTF-8 file of JSON or JSON Lines.") from error
        return content if isinstance(content, list) else [content]

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        # Lines are cut as bytes: one that is not UTF-8 spoils itself alone, and U+2028 within a string ends none.
        try:
            with self.file.open("rb") as stream:
                for number, line in enumerate(stream, start=1):
                    content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                    if content.strip():
                        yield number, content
        except OSError as error:
            raise LoadingError(f"Cannot read {self.file}: {error.strerror}. Name a file that can be read.") from error


def parse_json(text: str) -> object:
    """The value of a JSON text.

    Raises:
        ValueError: It is none, or is nested too deeply to be a row.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error})") from error
    return value


def explain(error: ValueError) -> str:
    """What is wrong with a row in one line: the first three faults, each with its place in the row."""
    if not isinstance(error, ValidationError):
        return str(error)
    faults = faults_of(error, whole="row")
    more = [f"and {len(faults) - _FAULTS_OF_A_ROW} more"] if len(faults) > _FAULTS_OF_A_ROW else []
    return "; ".join(faults[:_FAULTS_OF_A_ROW] + more)


def content_document(title: str, body: str) -> CorpusDocument:
    """A paragraph as a document: equal title and body give the same key, anything else another one.

    The key is the title and the first 12 digits of a SHA-256 over title and body: ``"Oslo [42a87a177b7c]"``.
    """
    digest = hashlib.sha256(f"{title}\x00{body}".encode()).hexdigest()[:_KEY_DIGITS]
    return CorpusDocument(key=f"{title} [{digest}]", text=titled_text(title, body), title=title)


def titled_text(title: str, body: str) -> str:
    """``"title. body"``, or whichever of the two there is."""
    return f"{title}. {body}" if title and body.strip() else title or body


def unique_answers(answers: Iterable[str]) -> tuple[str, ...]:
    """The answers in their order, each once, without blank ones."""
    return tuple(dict.fromkeys(answer for answer in answers if answer.strip()))


def language_tag(question: str) -> str:
    """``"zh"`` for a question in CJK letters (more than 5 %), else ``"en"``; for data sets that do not say."""
    return "zh" if language_of(cjk_share(question)) == "cjk" else "en"


def load_pooled(name: str, file: Path, read: Callable[[object], PooledRow]) -> Dataset:
    """Questions of a file, and the paragraphs of all its good rows pooled: equal ones are one document.

    Raises:
        LoadingError: The file cannot be read or has no good row.
    """
    reader = RowReader(file=file)
    questions: list[EvalQuestion] = []
    pool: dict[str, CorpusDocument] = {}
    for row in reader.rows(read, key=lambda row: row.question.id):
        questions.append(row.question)
        for document in row.documents:
            pool.setdefault(document.key, document)
    malformed = reader.checked()
    return with_digests(
        Dataset(name=name, questions=tuple(questions), documents=tuple(pool.values()), malformed=malformed)
    )


def with_digests(dataset: Dataset) -> Dataset:
    """The data set with both of its digests; reads every file of ``folder`` where there is one.

    Raises:
        LoadingError: A file of the folder cannot be read.
    """
    return _with_digest(replace(dataset, corpus_digest=_corpus_digest(dataset)))


def select_questions(dataset: Dataset, *, limit: int | None = None, ids: Collection[str] | None = None) -> Dataset:
    """The data set with fewer questions, in file order, over the same whole corpus.

    The corpus stays that of all questions: one that shrank with ``limit`` would make retrieval easier.

    Args:
        limit: The first so many questions, after ``ids`` have been chosen; None for all.
        ids: Only these questions; None for all.

    Raises:
        SettingsError: ``limit`` is below 1, or ``ids`` is empty or names a question that the data set does not have.
    """
    if limit is not None and limit < 1:
        raise SettingsError(f"limit={limit} leaves no question. Give 1 or more, or leave it out for all.")
    questions = dataset.questions
    if ids is not None:
        wanted = {ids} if isinstance(ids, str) else set(ids)
        questions = tuple(question for question in questions if question.id in wanted)
        _check_ids(wanted, dataset)
    if questions[:limit] == dataset.questions:
        return dataset
    return _with_digest(replace(dataset, questions=questions[:limit]))


def _check_ids(wanted: set[str], dataset: Dataset) -> None:
    unknown = sorted(wanted - {question.id for question in dataset.questions})
    if wanted and not unknown:
        return
    named = ", ".join(unknown[:_SHOWN]) + (f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else "")
    raise SettingsError(
        f"ids name no question of {dataset.name}: {named or 'none given'}. Its {len(dataset.questions)} ids begin with "
        f"{dataset.questions[0].id!r}; {len(dataset.malformed)} malformed rows were left out."
    )


def _with_digest(dataset: Dataset) -> Dataset:
    digest = hashlib.sha256(dataset.corpus_digest.encode())
    for question in dataset.questions:
        content = [question.id, question.question, question.answers, question.lang, question.type, question.hops]
        digest.update(_line([*content, question.supporting, question.answers_known]))
        if question.turn is not None:
            digest.update(_line([*astuple(question.turn)]))
    return replace(dataset, digest=digest.hexdigest())


def _corpus_digest(dataset: Dataset) -> str:
    digest = hashlib.sha256()
    if dataset.folder is not None:
        try:
            for file in scan_files(dataset.folder).files:
                digest.update(_line([file.source, file.digest()]))
        except OSError as error:
            raise LoadingError(f"Cannot read {dataset.folder}: {error}. Make its files readable.") from error
    elif not dataset.documents:
        return ""
    for document in dataset.documents:
        digest.update(_line([document.key, document.title, document.text, sorted(document.metadata.items())]))
    return digest.hexdigest()


def _line(content: list[object]) -> bytes:
    return json.dumps(content).encode() + b"\n"
