"""Parts that data set loaders share: numbered rows, documents with stable keys, digests, choice of questions."""

from __future__ import annotations

import codecs
import hashlib
import json
import logging
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError

from ...modules.digests import text_digest
from ...modules.errors import LoadingError, SettingsError, faults_of, reason_of
from ...modules.index.content import SOURCE
from ...modules.index.file_parsers import PARSERS
from ...modules.index.folder_scan import scan_files
from ...modules.index.parsers.parsed import clean_text
from ...modules.language.letters import cjk_share, language_of
from ...modules.reading.regular_files import MAX_DATA_BYTES, MAX_LINE_BYTES, lines_of, open_regular, read_named_json
from .questions import CorpusDocument, Dataset, EvalQuestion

logger = logging.getLogger(__name__)

_SHOWN = 10
"""Number of malformed rows, or ids, that a message lists."""
_FAULTS_OF_A_ROW = 3
_KEY_DIGITS = 12
_KEY_OF_PARAGRAPH = re.compile(rf"(.+) \[[0-9a-f]{{{_KEY_DIGITS}}}\]", re.DOTALL)
_START_BYTES = 4096
_LIST_ADVICE = "Give a UTF-8 file of JSON or JSON Lines."

T = TypeVar("T")
_R = TypeVar("_R")

Faults = list[tuple[int, str]]
"""(row number from 1, fault) of malformed rows."""


def _cleaned(value: object) -> object:
    return clean_text(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_cleaned)]
"""A string of a data set file, without characters that databases and UTF-8 reject."""
# The constraints are next to str: after the validator, pydantic would measure the length before stripping.
Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), BeforeValidator(_cleaned)]
"""A ``Text`` stripped of surrounding white space, and not empty."""


class DatasetRow(BaseModel):
    """A row of a file: unknown keys are ignored, and numbers are accepted as strings (ids, answers)."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


@dataclass(frozen=True, kw_only=True)
class PooledRow:
    """The questions of a row, and the paragraphs that it adds to the corpus."""

    questions: tuple[EvalQuestion, ...]
    documents: tuple[CorpusDocument, ...] = ()


@dataclass(kw_only=True)
class RowReader:
    """Reader of one file, row by row, that collects the faults of malformed rows.

    It accepts a UTF-8 byte order mark, CRLF line ends and blank lines.
    """

    file: Path
    max_line_bytes: int = MAX_LINE_BYTES
    malformed: Faults = field(default_factory=list)
    """(row number, fault) in file order. Rows are lines, blank ones included, or list items, counted from 1."""
    accepted: int = 0
    number: int = 0
    """Number of the row that is read; 0 before the first."""

    def rows(self, read: Callable[[object], T], *, key: Callable[[T], Hashable]) -> Iterator[T]:
        """Yield the rows of a JSON list or of JSON Lines in file order, converted by ``read``.

        JSON Lines are read line by line; a JSON list is read whole.

        Args:
            read: Converts the JSON of a row; raises ValueError for a malformed one.
            key: Returns the key of a row; a later row with the same key is malformed.

        Raises:
            LoadingError: The file cannot be read, or is a JSON list with a syntax error.
        """
        if self.is_list():
            yield from self.items(enumerate(self._list(), start=1), read, key=key)
        else:
            yield from self.lines(lambda line: read(parse_json(line)), key=key)

    def lines(self, read: Callable[[str], T], *, key: Callable[[T], Hashable]) -> Iterator[T]:
        """Yield the lines of a text file, converted by ``read``; blank lines are skipped.

        Raises:
            LoadingError: The file cannot be read.
        """
        yield from self.items(self._lines(), lambda line: read(line.decode("utf-8")), key=key)

    def items(
        self, numbered: Iterable[tuple[int, _R]], read: Callable[[_R], T], *, key: Callable[[T], Hashable]
    ) -> Iterator[T]:
        """Yield numbered items of the file, converted by ``read``."""
        first_row: dict[Hashable, int] = {}
        for number, raw in numbered:
            self.number = number
            try:
                row = read(raw)
            except ValueError as error:  # also ValidationError, JSONDecodeError, UnicodeDecodeError
                self.malformed.append((number, explain(error)))
                continue
            except RecursionError:
                self.malformed.append((number, "it is nested too deep"))
                continue
            if first_row.setdefault(key(row), number) != number:
                self.malformed.append((number, f"{key(row)!r} was already in row {first_row[key(row)]}"))
                continue
            self.accepted += 1
            yield row

    def checked(self) -> tuple[tuple[int, str], ...]:
        """Return the malformed rows, once every row is read, and log a warning if there are any.

        Raises:
            LoadingError: There is no valid row. The message lists the first ten faults.
        """
        if self.accepted and self.malformed:
            number, fault = self.malformed[0]
            counts = len(self.malformed), self.accepted + len(self.malformed)
            logger.warning("Left out %d of %d rows of %s; the first is row %d: %s", *counts, self.file, number, fault)
        if not self.accepted and not self.malformed:
            raise LoadingError(f"{self.file} has no rows. Name a file that has some.")
        if not self.accepted:
            shown = "\n".join(f"  row {number}: {fault}" for number, fault in self.malformed[:_SHOWN])
            raise LoadingError(
                f"All rows of {self.file} are malformed ({len(self.malformed)}). Is the format right?\n" + shown
            )
        return tuple(self.malformed)

    def all_accepted(self, advice: str) -> tuple[tuple[int, str], ...]:
        """Return no malformed row, once every row is read.

        Args:
            advice: What to do about malformed rows, in whole sentences.

        Raises:
            LoadingError: There is a malformed row, or no row. The message lists the first ten faults.
        """
        if self.accepted and self.malformed:
            shown = [f"  row {number}: {fault}" for number, fault in self.malformed[:_SHOWN]]
            more = [f"  and {len(self.malformed) - _SHOWN} more"] if len(self.malformed) > _SHOWN else []
            counts = f"{len(self.malformed)} of {self.accepted + len(self.malformed)} rows of {self.file}"
            raise LoadingError("\n".join([f"{counts} cannot be read. {advice}", *shown, *more]))
        return self.checked()

    def named_faults(self) -> Faults:
        """Return ``checked()`` with the file's name before each reason, for data sets of several files."""
        return [(number, f"{self.file.name}: {fault}") for number, fault in self.checked()]

    def is_list(self) -> bool:
        """Return whether the file holds a JSON list, and no JSON Lines.

        Raises:
            LoadingError: The file cannot be read.
        """
        if self.file.suffix.lower() in (".jsonl", ".ndjson"):
            return False
        # A list may be one line of hundreds of megabytes, as pandas and HotpotQA write it.
        try:
            with open_regular(self.file) as stream:
                start = stream.read(_START_BYTES).removeprefix(codecs.BOM_UTF8).lstrip()
                while not start and (block := stream.read(_START_BYTES)):
                    start = block.lstrip()
        except (LoadingError, OSError) as error:
            raise self._unreadable(error) from error
        return start.startswith(b"[")

    def _list(self) -> list[object]:
        content = read_named_json(self.file, what="rows of", advice=_LIST_ADVICE, max_bytes=MAX_DATA_BYTES)
        return content if isinstance(content, list) else [content]

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        # Split as bytes: a line that is not UTF-8 spoils only itself, and U+2028 within a string ends no line.
        try:
            with open_regular(self.file) as stream:
                for number, line in enumerate(lines_of(stream, max_bytes=self.max_line_bytes), start=1):
                    content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                    if content.strip():
                        yield number, content
        except (LoadingError, OSError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: LoadingError | OSError) -> LoadingError:
        if isinstance(error, OSError):
            return LoadingError(f"Cannot read {self.file}: {error.strerror}. Name a readable file.")
        return LoadingError(
            f"Cannot read {self.file}: {reason_of(error)}. Name a file with a row in each line, or a JSON list."
        )


def parse_json(text: str) -> object:
    """Parse a JSON text.

    Raises:
        ValueError: The text is not JSON, or is nested too deeply.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error})") from error
    return value


def explain(error: ValueError) -> str:
    """Describe the faults of a row in one line: the first three, each with its place in the row."""
    if not isinstance(error, ValidationError):
        return str(error)
    faults = faults_of(error, whole="row")
    more = [f"and {len(faults) - _FAULTS_OF_A_ROW} more"] if len(faults) > _FAULTS_OF_A_ROW else []
    return "; ".join(faults[:_FAULTS_OF_A_ROW] + more)


def content_document(title: str, body: str) -> CorpusDocument:
    """Make a document of a paragraph; its key depends on title and body alone, so equal paragraphs share it.

    The key is the title and the first 12 digits of a SHA-256 over title and body: ``"Oslo [42a87a177b7c]"``.
    """
    digest = text_digest(title, body).hex()[:_KEY_DIGITS]
    return CorpusDocument(key=f"{title} [{digest}]", text=titled_text(title, body), title=title)


def title_in_key(key: str) -> str:
    """Return the title in the key of a document: of a paragraph, of a file without its ending, or the key itself.

    >>> title_in_key("Oslo [42a87a177b7c]"), title_in_key("norms/ks-1.md"), title_in_key("Dr. No")
    ('Oslo', 'ks-1', 'Dr. No')
    """
    if found := _KEY_OF_PARAGRAPH.fullmatch(key):
        return found[1]
    path = PurePosixPath(key)
    return path.stem if path.suffix.lower() in PARSERS else key


def titled_text(title: str, body: str) -> str:
    """Join ``"title. body"``, or return the one that is not empty."""
    return f"{title}. {body}" if title and body.strip() else title or body


def unique_answers(answers: Iterable[str]) -> tuple[str, ...]:
    """Drop blank and repeated answers, keeping the order."""
    return tuple(dict.fromkeys(answer for answer in answers if answer.strip()))


def language_tag(question: str) -> str:
    """Return ``"zh"`` for a question with more than 5 % CJK letters, else ``"en"``."""
    return "zh" if language_of(cjk_share(question)) == "cjk" else "en"


def load_pooled(name: str, file: Path, read: Callable[[object], PooledRow]) -> Dataset:
    """Read the questions of a file, and pool the paragraphs of all valid rows; equal ones become one document.

    Paragraphs of one title that differ by white space alone are equal: 2WikiMultihopQA has some in two spellings.

    Raises:
        LoadingError: The file cannot be read or has no valid row.
    """
    reader = RowReader(file=file)
    rows = list(reader.rows(read, key=lambda row: row.questions[0].id))
    return pooled(name, _without_twins(rows), malformed=reader.checked())


def _without_twins(rows: Iterable[PooledRow]) -> Iterator[PooledRow]:
    """Give paragraphs that differ by white space alone the key of the first of them, in questions too."""
    first: dict[tuple[str, str], str] = {}
    for row in rows:
        keys = {
            each.key: first.setdefault((each.title, "".join(each.text.split())), each.key) for each in row.documents
        }
        yield PooledRow(
            questions=tuple(_renamed(question, keys) for question in row.questions),
            documents=tuple(replace(each, key=keys[each.key]) for each in row.documents),
        )


def _renamed(question: EvalQuestion, names: Mapping[str, str]) -> EvalQuestion:
    """Call the documents of a question by other names, where they have one; gold documents are no distractors."""
    supporting = tuple(dict.fromkeys(names.get(key, key) for key in question.supporting))
    others = dict.fromkeys(names.get(key, key) for key in question.distractors)
    groups = (tuple(dict.fromkeys(names.get(key, key) for key in group)) for group in question.alternatives)
    return replace(
        question,
        supporting=supporting,
        alternatives=tuple(group for group in groups if len(group) > 1),
        distractors=tuple(each for each in others if each not in supporting),
        facts=tuple((names.get(key, key), words) for key, words in question.facts),
    )


def pooled(
    name: str,
    rows: Iterable[PooledRow],
    *,
    malformed: Iterable[tuple[int, str]],
    order: Callable[[Iterable[EvalQuestion]], tuple[EvalQuestion, ...]] = tuple,
) -> Dataset:
    """Join rows to a data set with digests; of several documents with one key, the first counts."""
    questions: list[EvalQuestion] = []
    pool: dict[str, CorpusDocument] = {}
    for row in rows:
        questions += row.questions
        for document in row.documents:
            pool.setdefault(document.key, document)
    return with_digests(
        Dataset(name=name, questions=order(questions), documents=tuple(pool.values()), malformed=tuple(malformed))
    )


def with_digests(dataset: Dataset) -> Dataset:
    """Fill in both digests; reads every file of ``folder``, if there is one.

    Raises:
        LoadingError: A file of the folder cannot be read.
    """
    return _with_digest(replace(dataset, corpus_digest=_corpus_digest(dataset)))


def keyed_by_title(dataset: Dataset, key_field: str = SOURCE) -> Dataset:
    """Name gold documents by their titles, for a search of another corpus than the data set's, which is left out.

    Any passage of that corpus with the title of a gold document in its metadata field ``key_field`` counts as that
    document.
    """
    titles = {document.key: document.title or document.key for document in dataset.documents}
    questions = tuple(_renamed(question, titles) for question in dataset.questions)
    return with_digests(replace(dataset, questions=questions, documents=(), folder=None, key_field=key_field))


def select_questions(dataset: Dataset, *, limit: int | None = None, ids: Collection[str] | None = None) -> Dataset:
    """Keep some of the questions, in file order, over the same whole corpus.

    Args:
        dataset: The data set.
        limit: Number of questions to keep, after the choice of ``ids``; None for all.
        ids: Ids of the questions to keep; None for all.

    Raises:
        SettingsError: ``limit`` is below 1, or ``ids`` is empty or names a question that the data set lacks.
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
        if question.alternatives:
            digest.update(_line([*question.alternatives]))
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
            raise LoadingError(f"Cannot read {dataset.folder}: {reason_of(error)}. Make its files readable.") from error
    elif not dataset.documents:
        return ""
    for document in dataset.documents:
        digest.update(_line([document.key, document.title, document.text, sorted(document.metadata.items())]))
    return digest.hexdigest()


def _line(content: list[object]) -> bytes:
    return json.dumps(content).encode() + b"\n"
