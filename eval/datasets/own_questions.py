"""Question files of one's own: CSV, TSV, Excel, JSON or JSON Lines, with columns found by their usual names."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, cast, get_args

from ...modules.errors import LoadingError, SettingsError, needs_extra
from ...modules.index.file_parsers import LoadLimits
from ...modules.index.folder_scan import scan_files
from ...modules.index.parser_process import LARGE_BYTES, ParserProcess
from ...modules.index.parsers.parsed import clean_text
from ...modules.reading.regular_files import read_named
from ...modules.reading.spreadsheet_cells import of_cell
from ...modules.storage.atomic import write_whole
from .questions import Dataset, EvalQuestion
from .rows import RowReader, language_tag, parse_json, unique_answers, with_digests

Column = Literal["id", "question", "answer", "supporting", "type", "lang"]

USUAL_NAMES: Mapping[Column, tuple[str, ...]] = {
    "id": ("id", "_id", "qid", "question_id", "query_id"),
    "question": ("question", "query", "user_input", "input", "prompt", "问题"),
    "answer": (
        *("answer", "answers", "gold", "gold_answer", "golden_answers", "ground_truth", "ground_truths"),
        *("reference", "references", "expected", "expected_answer", "target", "答案"),
    ),
    "supporting": (
        *("supporting", "supporting_documents", "gold_documents", "documents", "document"),
        *("sources", "source", "files", "file"),
    ),
    "type": ("type", "kind", "category"),
    "lang": ("lang", "language"),
}
"""The names that a column may have, in any case; the first of them that a row has is taken."""

UNANSWERABLE = "unanswerable"
"""The type of a question to which a refusal is the right answer."""

_WORKBOOKS = (".xlsx", ".xlsm")
_SHAPES = {".csv": "CSV", ".tsv": "TSV", **dict.fromkeys(_WORKBOOKS, "a workbook")}
_TABLES = frozenset(_SHAPES)
_FOREIGN = {
    ".gz": "is packed: unpack it, as with gunzip",
    ".zip": "is packed: unpack it",
    ".xls": "is a workbook of an old kind. Save it as .xlsx",
    ".ods": "is a workbook of LibreOffice. Save it as .xlsx",
    ".parquet": "is a Parquet file. Save it as CSV, or give what pandas.read_parquet returns as questions",
}
"""Files that people have for tables and that are not read, with what to do."""
_LIMITS = LoadLimits()
_ADVICE = "Give a UTF-8 file, a workbook that Excel or LibreOffice opens, or several smaller files."


def load_own_questions(path: Path, *, columns: Mapping[str, str] | None = None, folder: Path | None = None) -> Dataset:
    """Read the questions of a CSV, TSV, Excel, JSON or JSON Lines file.

    Columns, or keys of JSON objects, are found by ``USUAL_NAMES``; only the question is needed. A cell of ``answer`` or
    ``supporting`` holds one value, several with ``|`` between them, or a JSON list; the first answer is the gold one,
    the others are aliases. A question without an answer is scored neither for answers nor for refusals, unless its
    type is ``unanswerable``. Questions without an id are named by their row.

    Args:
        path: The file. The first row of a table names the columns; of a workbook, the first sheet is read.
        columns: Names of columns that are called otherwise: ``{"question": "Frage"}``.
        folder: Folder of the documents to search, whose paths ``supporting`` names; None for a collection or no corpus.

    Raises:
        SettingsError: A key of ``columns`` is none of the columns.
        LoadingError: The file or folder cannot be read, or the file has no valid row.
        MissingExtraError: The file is a workbook, and the extra ``eval`` is not installed.
    """
    if unknown := sorted(set(columns or {}) - set(get_args(Column))):
        raise SettingsError(f"columns: {unknown[0]!r} is not allowed. Allowed: {', '.join(get_args(Column))}.")
    if foreign := _FOREIGN.get(path.suffix.lower()):
        raise LoadingError(f"{path} {foreign}.")
    reader = _QuestionReader(path, columns or {}, folder)
    if path.suffix.lower() in _TABLES:
        known = {name.casefold() for names in (*USUAL_NAMES.values(), (columns or {}).values()) for name in names}
        header, below = _table(path, known)
        return reader.dataset(reader.rows.items(below, lambda cells: reader.of_cells(_named(header, cells)), key=_id))
    if reader.rows.is_list():
        return reader.dataset(reader.rows.items(_rows_of(path, "objects", _bytes_of(path)), reader.of_row, key=_id))
    return reader.dataset(reader.rows.rows(reader.of_row, key=_id))


def questions_in(given: object, *, name: str, folder: Path | None = None) -> Dataset:
    """Read questions from a DataFrame, or a list of questions or of mappings, as ``load_own_questions`` does.

    Args:
        given: The rows.
        name: What messages call them.
        folder: As for ``load_own_questions``.

    Raises:
        SettingsError: ``given`` is something else.
        LoadingError: There is no valid row.
    """
    rows = _records(given)
    if not isinstance(rows, Sequence) or isinstance(rows, str | bytes):
        raise SettingsError(f"{name} gives {given!r:.100}. Give a Dataset, a DataFrame, or a list of mappings.")
    reader = _QuestionReader(Path(name), {}, folder)
    objects = ({"question": row} if isinstance(row, str) else row for row in rows)
    return reader.dataset(reader.rows.items(enumerate(objects, start=1), reader.of_row, key=_id))


class _QuestionReader:
    """Reads rows as questions."""

    def __init__(self, file: Path, columns: Mapping[str, str], folder: Path | None) -> None:
        self.rows = RowReader(file=file, max_line_bytes=LARGE_BYTES)
        self._columns = columns
        self._folder = folder
        self._sources = None if folder is None else _sources_of(folder)

    def of_row(self, row: object) -> EvalQuestion:
        """Read a mapping."""
        if not isinstance(row, Mapping):
            raise ValueError("it is not an object with keys such as question and answer")
        return self.of_cells([*row.items()])

    def of_cells(self, named: Sequence[tuple[object, object]]) -> EvalQuestion:
        """Read (column, cell) pairs."""
        return _question(_Cells(named, self._columns), default_id=f"q{self.rows.number}", sources=self._sources)

    def dataset(self, rows: Iterable[EvalQuestion]) -> Dataset:
        """Collect the questions."""
        questions, folder = tuple(rows), self._folder
        malformed = self.rows.checked()
        return with_digests(
            Dataset(name="questions", questions=questions, folder=folder, key_field="source", malformed=malformed)
        )


def keep_questions(questions: object, folder: Path) -> Path:
    """Write a DataFrame, a Series, or a list of questions or of mappings, as a questions file; returns the file.

    Its name has the digest of its content, so that other questions do not replace it.

    Raises:
        SettingsError: The questions are something else, there is none, or a value is none that JSON can hold.
        WritingError: They could not be written.
    """
    rows = _records(questions)
    if isinstance(rows, Sequence) and not rows:
        raise SettingsError("questions is empty. Give at least one question.")
    if not isinstance(rows, Sequence) or isinstance(rows, str | bytes):
        raise SettingsError(
            f"questions={questions!r:.200} is not usable. Give a file, a DataFrame, or a list of questions or mappings."
        )
    try:
        objects = ({"question": row} if isinstance(row, str) else row for row in rows)
        lines = [json.dumps(each, ensure_ascii=False, default=_plain) + "\n" for each in objects]
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingsError(f"questions cannot be written as JSON: {error}. Give texts, numbers and lists.") from error
    content = "".join(lines).encode("utf-8", "backslashreplace")
    file = folder / f"questions-{hashlib.sha256(content).hexdigest()[:12]}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, content)
    return file


def with_questions_kept(keys: Mapping[str, object], folder: Path) -> dict[str, object]:
    """Return the keys of an experiment with a file for its ``questions``, where these are no file themselves.

    Raises:
        SettingsError: They cannot be kept; see ``keep_questions``.
    """
    questions = keys.get("questions")
    return (
        {**keys}
        if isinstance(questions, str | Path | None)
        else {**keys, "questions": keep_questions(questions, folder)}
    )


def _records(questions: object) -> object:
    """Return the rows of what pandas made, or ``questions`` itself."""
    if not hasattr(questions, "to_dict"):
        return questions
    if not hasattr(questions, "columns"):
        return questions.tolist() if hasattr(questions, "tolist") else questions
    if not questions.columns.is_unique:
        repeated = questions.columns[questions.columns.duplicated()][0]
        raise SettingsError(f"questions has two columns {repeated!r}. Rename one of them.")
    return questions.to_dict("records")


def _plain(value: object) -> object:
    """Convert what numpy and pandas put into frames; dates are written as in a CSV file."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, date):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _id(question: EvalQuestion) -> str:
    return question.id


def _sources_of(folder: Path) -> frozenset[str]:
    if not folder.is_dir():
        raise LoadingError(f"There is no folder {folder}. Name the folder of the documents, or a collection.")
    return frozenset(file.source for file in scan_files(folder).files)


def _table(path: Path, names: Collection[str]) -> tuple[Sequence[object], Iterator[tuple[int, Sequence[object]]]]:
    """Return the first row, and those below with their numbers, as a spreadsheet shows them, without empty ones."""
    data = _bytes_of(path)
    if path.suffix.lower() in _WORKBOOKS:
        with needs_extra("eval"):
            if find_spec("openpyxl") is None:
                raise ModuleNotFoundError(name="openpyxl")
        parser = "workbook"
    else:
        parser = f"cells{_separator(path, data, names)}"
    rows = ((number, _unmarked(cells)) for number, cells in _rows_of(path, parser, data))
    _, header = next(rows, (1, []))
    return header, (each for each in rows if not _is_blank(each[1]))


def _unmarked(cells: object) -> list[object]:
    """Return the cells of a row without the marks of ``to_cell``."""
    return [of_cell(cell) if isinstance(cell, str) else cell for cell in cast("list[object]", cells)]


def _bytes_of(path: Path) -> bytes:
    return read_named(path, what="questions of", advice="Name a file of questions.", max_bytes=_LIMITS.file_bytes)


def _rows_of(path: Path, parser: str, data: bytes) -> Iterator[tuple[int, object]]:
    """Yield the rows of a file with their numbers, parsed within the limits of documents, large files in a process."""
    try:
        with ParserProcess(_LIMITS) as process:
            parsed = process.parse(parser, data)
    except LoadingError as error:
        shape = _SHAPES.get(path.suffix.lower(), "JSON")
        raise LoadingError(f"Cannot read {path} as {shape}: {error}. {_ADVICE}") from error
    return ((cast(int, metadata["row"]), json.loads(row)) for row, metadata in parsed)


def _is_blank(cells: Sequence[object]) -> bool:
    return not any(_shown(cell).strip() for cell in cells)


def _named(header: Sequence[object], cells: Sequence[object]) -> list[tuple[object, object]]:
    if not _is_blank(cells[len(header) :]):
        raise ValueError(
            f"it has {len(cells)} cells, and the first row names {len(header)} columns. Put a text that holds the "
            "separator between quotes"
        )
    return [*zip(header, [*cells, *[None] * (len(header) - len(cells))], strict=False)]


def _separator(path: Path, data: bytes, names: Collection[str]) -> str:
    """Return what separates the first line into the most of ``names``, or else into the most columns."""
    header = data.partition(b"\n")[0].decode("utf-8-sig", "replace")

    def columns_by(separator: str) -> tuple[int, int]:
        found = [name.strip(' "\r').casefold() for name in header.split(separator)]
        return sum(name in names for name in found), len(found)

    return "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=columns_by)


class _Cells:
    """The cells of one row by column."""

    def __init__(self, named: Sequence[tuple[object, object]], columns: Mapping[str, str]) -> None:
        names = [_shown(name).strip() for name, _ in named]
        self._cells = dict(zip(map(str.casefold, names), (cell for _, cell in named), strict=True))
        self._counts = Counter(map(str.casefold, names))
        self._columns = columns
        there = ", ".join(names)
        if missing := [name for name in columns.values() if name.casefold() not in self._cells]:
            raise ValueError(f"there is no column {missing[0]!r}; there are {there}")
        if self._name_of("question") is None:
            raise ValueError(f"there is no column question; there are {there}. Name it: --columns question=NAME")

    def texts(self, column: Column) -> tuple[str, ...]:
        """Return the texts in a cell; none where the column is missing or the cell empty."""
        name = self._name_of(column)
        texts = (clean_text(part).strip() for part in _parts(self._cells[name] if name else None))
        return tuple(filter(None, texts))

    def text(self, column: Column) -> str:
        """Return the text of a cell; ``""`` where the column is missing or the cell empty."""
        name = self._name_of(column)
        cell = self._cells[name] if name else None
        return clean_text(_shown(cell)).strip()

    def _name_of(self, column: Column) -> str | None:
        names = (self._columns[column].casefold(),) if column in self._columns else USUAL_NAMES[column]
        name = next((name for name in names if name in self._cells), None)
        if name is not None and self._counts[name] > 1:
            raise ValueError(f"there are {self._counts[name]} columns {name!r}. Rename all but one")
        return name


def _shown(cell: object) -> str:
    """Write a cell as a spreadsheet shows it: whole numbers without a point, missing ones empty."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _parts(cell: object) -> list[str]:
    if isinstance(cell, list | tuple):
        return [part for each in cell for part in _parts(each)]
    text = _shown(cell).strip()
    if text.startswith("["):
        try:
            return _parts(parse_json(text))
        except ValueError:
            return [text]
    return text.split("|")


def _question(cells: _Cells, *, default_id: str, sources: Collection[str] | None) -> EvalQuestion:
    question = cells.text("question")
    if not question:
        raise ValueError("its question is empty")
    supporting = cells.texts("supporting")
    if sources is not None and (missing := [source for source in supporting if source not in sources]):
        near = difflib.get_close_matches(missing[0], sources, n=1)
        hint = f"; is it {near[0]!r}?" if near else ""
        raise ValueError(f"supporting: there is no file {missing[0]!r} in the folder{hint}")
    kind = cells.text("type")
    answers = unique_answers(cells.texts("answer"))
    return EvalQuestion(
        id=cells.text("id") or default_id,
        question=question,
        answers=() if kind == UNANSWERABLE else answers,
        answers_known=bool(answers) or kind == UNANSWERABLE,
        lang=cells.text("lang") or language_tag(question),
        type=kind,
        supporting=tuple(dict.fromkeys(supporting)),
    )
