"""Question files of one's own: CSV, TSV, Excel, JSON or JSON Lines, with columns found by their usual names."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from ...modules.errors import LoadingError, SettingsError
from ...modules.index.folder_scan import scan_files
from ..question_files.cell_texts import (
    LISTED,
    MISSING_WORDS,
    NAME_ANOTHER,
    NOT_LISTED,
    CellTexts,
    cell_texts,
    is_missing,
    looks_like_a_list,
    one_text,
    question_text,
)
from ..question_files.file_rows import USUAL_NAMES, Column, FileRow, FileRows, read_rows, repeated_names
from ..question_files.kept_questions import records_of
from ..question_files.read_report import Doubts, QuestionsRead
from .questions import Dataset, EvalQuestion
from .rows import RowReader, language_tag, unique_answers, with_digests

logger = logging.getLogger(__name__)

UNANSWERABLE = "unanswerable"
"""The type of a question to which a refusal is the right answer."""

_LONGEST_SEPARATOR = 20
_DOUBTS_SHOWN = 10
_NAMES_SHOWN = 30
_NAME_SHOWN = 60

_EPOCH = re.compile(r"1\d{12}|1\d{15}|1\d{18}")
"""Milliseconds, microseconds and nanoseconds since 1970, from 2001 on."""
_FLOAT = re.compile(r"-?\d+\.0")


def load_own_questions(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    folder: Path | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    skip_bad_rows: bool = False,
) -> Dataset:
    """Read the questions of a CSV, TSV, Excel, JSON or JSON Lines file.

    Columns, or keys of JSON objects, are found by ``USUAL_NAMES``; only the question is needed. A cell of ``answer`` or
    ``supporting`` holds one text, in a table several with ``|`` between them, or a list as JSON or Python writes it.
    The first answer is the gold one, the others are aliases. Texts stay as they are written. A question without one is
    scored neither for answers nor for refusals, unless its type is ``unanswerable``. Questions without an id are
    named by their row. One line of what was read is logged, and what may be meant otherwise as a warning.

    Args:
        path: The file. The first row of a table names the columns; of a workbook, the first sheet is read
            that it shows.
        columns: Names of columns that are called otherwise: ``{"question": "Frage"}``; "" for a column to leave out.
        folder: Folder of the documents to search, whose paths ``supporting`` names; None for a collection or no corpus.
        separator: What stands between several answers in one text; "none" for nothing, None for ``|`` in the cells of
            tables and nothing in texts of JSON. A backslash before it keeps it; items of lists are never split.
        encoding: Encoding of a text file; None finds it.
        skip_bad_rows: Leave bad rows out, as ``malformed`` of the data set, in place of refusing the file.

    Raises:
        SettingsError: A key of ``columns`` is none of the columns, or separator or encoding are not allowed.
        LoadingError: The file or folder cannot be read, has a bad row, or none; bad rows are listed.
        MissingExtraError: The file is a workbook, and the extra ``eval`` is not installed.
    """
    if unknown := sorted(set(columns or {}) - set(get_args(Column))):
        raise SettingsError(f"columns: {unknown[0]!r} is not allowed. Allowed: {', '.join(get_args(Column))}.")
    wanted = {name: known.casefold() for name, known in (columns or {}).items()}
    known = {name.casefold() for names in (*USUAL_NAMES.values(), wanted.values()) for name in names}
    asked, ids = (
        [wanted[column].strip()] if column in wanted else USUAL_NAMES[column] for column in ("question", "id")
    )
    found = read_rows(path, names=known, question_names=asked, id_names=[*filter(None, ids)], encoding=encoding)
    listed = LISTED if separator is None and found.is_table else check_separator(separator) if separator else ""
    reader = _QuestionReader(path, columns or {}, folder, listed)
    if found.header and (fault := _Cells.fault_of(found.header, columns or {})):
        others = ", ".join(map(repr, found.other_sheets))
        sheet = f" It is the sheet {found.sheet!r}; not read: {others:.300}." if others else ""
        raise LoadingError(f"Cannot read {path} as {found.shape}: {fault}.{sheet}")
    rows = reader.rows.items(((row.number, row) for row in found.rows), reader.of_row, key=_id)
    return reader.dataset(rows, found, skip_bad_rows=skip_bad_rows)


def check_separator(separator: str) -> str:
    """Return a separator of answers; "none" for the word none in any case.

    Raises:
        SettingsError: It is none.
    """
    if separator.strip().casefold() == NOT_LISTED:
        return NOT_LISTED
    if not separator.strip(" ") or "\\" in separator or len(separator) > _LONGEST_SEPARATOR:
        raise SettingsError(
            f"separator={separator!r:.60} cannot stand between answers. Give a mark such as | or ;, of at most "
            f"{_LONGEST_SEPARATOR} characters without a backslash; or the word {NOT_LISTED}, if nothing parts them."
        )
    return separator


def questions_in(given: object, *, name: str, folder: Path | None = None) -> Dataset:
    """Read questions from a DataFrame, or a list of questions or of mappings, as ``load_own_questions`` does.

    Args:
        given: The rows.
        name: What messages call them.
        folder: As for ``load_own_questions``.

    Raises:
        SettingsError: ``given`` is something else.
        LoadingError: A row is bad, or there is none.
    """
    rows = records_of(given)
    if not isinstance(rows, Sequence) or isinstance(rows, str | bytes):
        raise SettingsError(f"{name} gives {given!r:.100}. Give a Dataset, a DataFrame, or a list of mappings.")
    reader = _QuestionReader(Path(name), {}, folder, "")
    objects = ({"question": row} if isinstance(row, str) else row for row in rows)
    numbered = ((number, _row_of(number, row)) for number, row in enumerate(objects, start=1))
    found = FileRows(rows=iter(()), shape="objects", is_table=False)
    return reader.dataset(reader.rows.items(numbered, reader.of_row, key=_id), found, skip_bad_rows=False)


def _row_of(number: int, row: object) -> FileRow:
    if not isinstance(row, Mapping):
        return FileRow(number=number, cells=(), fault="it is not an object with keys such as question and answer")
    return FileRow(number=number, cells=[(str(key), cell) for key, cell in row.items()])


class _QuestionReader:
    """Reads rows as questions, and counts what their cells are like."""

    def __init__(self, file: Path, columns: Mapping[str, str], folder: Path | None, separator: str) -> None:
        self.rows = RowReader(file=file)
        self._columns = columns
        self._folder = folder
        self._sources = None if folder is None else _sources_of(folder)
        self._separator = separator
        self._names: dict[str, None] = {}
        self._used: dict[str, dict[str, None]] = {}
        self._doubts = Doubts()

    def of_row(self, row: FileRow) -> EvalQuestion:
        """Read a row."""
        if row.fault:
            raise ValueError(row.fault)
        if row.doubt:
            self._doubts.add("row", row.doubt, row.number)
        if row.is_hidden:
            what = "rows that the sheet hides are read: delete them if they are not meant"
            self._doubts.add("hidden", what, row.number)
        names = [name for name, _ in row.cells]
        self._names.update(
            dict.fromkeys(name or _NAMELESS for name, cell in row.cells if name or cell not in (None, ""))
        )
        if fault := _Cells.fault_of(names, self._columns):
            raise ValueError(fault)
        return self._question(_Cells(row, self._columns, self._used, self._doubts))

    def _question(self, cells: _Cells) -> EvalQuestion:
        question = cells.question()
        supporting = cells.texts("supporting", self._separator)
        self._check_supporting(supporting)
        answers = cells.texts("answer", self._separator)
        kind = cells.text("type") or (UNANSWERABLE if answers.is_unanswerable else "")
        known = unique_answers(answers.texts)
        refuses = answers.is_unanswerable or kind.casefold() == UNANSWERABLE
        if refuses and known:
            told = "answers are left out, since the type says that there is none: empty one of both"
            self._doubts.add("lost", told, cells.number, value=known[0])
        if not refuses and (word := next((each for each in known if each.casefold() in MISSING_WORDS), None)):
            told = f"the answer {word!r} is read as this text: leave the cell empty for none"
            self._doubts.add("literal", told, cells.number)
        return EvalQuestion(
            id=cells.text("id") or f"q{self.rows.number}",
            question=question,
            answers=() if refuses else known,
            answers_known=bool(known) or refuses,
            lang=cells.text("lang") or language_tag(question),
            folds_letters=True,
            type=kind,
            supporting=tuple(dict.fromkeys(supporting.texts)),
            alternatives=supporting.alternatives,
            shares=(cluster,) if (cluster := cells.text("cluster")) else (),
        )

    def _check_supporting(self, supporting: CellTexts) -> None:
        others = [name for _, *others in supporting.alternatives for name in others]
        names = [*supporting.texts, *others]
        if word := next((each for each in names if each.casefold() in MISSING_WORDS), None):
            raise ValueError(f"supporting: {word!r} is a missing value, no document. Leave the cell empty")
        if repeated := next(
            (each for group in supporting.alternatives for each in group if names.count(each) > 1), None
        ):
            raise ValueError(
                f"supporting: {repeated!r} stands in a list of documents of which any one will do, and once more. "
                "Name it once"
            )
        if self._sources is None or not (missing := [each for each in names if each not in self._sources]):
            return
        near = difflib.get_close_matches(missing[0], self._sources, n=1)
        hint = f"; is it {near[0]!r}?" if near else ""
        raise ValueError(f"supporting: there is no file {missing[0]!r} in the folder{hint}")

    def dataset(self, rows: Iterable[EvalQuestion], found: FileRows, *, skip_bad_rows: bool) -> Dataset:
        """Collect the questions, and tell what was read."""
        questions, file = tuple(rows), self.rows.file
        malformed = self.rows.checked() if skip_bad_rows else self.rows.all_accepted(_SKIP)
        used = {column: " or ".join(names) for column, names in self._used.items()}
        if found.is_guess:
            self._doubts.add("encoding", f"its encoding {found.encoding} is a guess: name another by --encoding")
        for name in found.hidden_columns:
            if any(name in names for names in self._used.values()):
                self._doubts.add("hidden", f"the column {name!r} is read, which the sheet hides")
        if found.struck:
            self._doubts.add("shown", f"parts that are struck through are left out of {found.struck} cells")
        answers = [answer for each in questions for answer in each.answers]
        if answers and all(map(_EPOCH.fullmatch, answers)):
            self._doubts.add(
                "shown",
                "all answers may be dates as milliseconds or nanoseconds since 1970, as pandas writes them into JSON: "
                'give to_json(date_format="iso")',
                value=answers[0],
            )
        elif answers and all(map(_FLOAT.fullmatch, answers)):
            self._doubts.add(
                "shown", "all answers end in .0, as whole numbers beside a blank do in pandas", value=answers[0]
            )
        doubts = self._doubts.phrases()
        read = QuestionsRead(
            file=str(file),
            shape=found.shape,
            questions=len(questions),
            with_answers=sum(bool(each.answers) for each in questions),
            unanswerable=sum(not each.is_answerable for each in questions),
            with_supporting=sum(bool(each.supporting) for each in questions),
            left_out=len(malformed),
            separator=found.separator,
            encoding=found.encoding,
            sheet=found.sheet,
            other_sheets=found.other_sheets,
            columns=used,
            unused=tuple(name for name in self._names if not any(name in names for names in self._used.values())),
            doubts=tuple(doubts),
            doubtful_rows=self._doubts.rows,
        )
        logger.info("%s", read.to_line())
        if doubts:
            more = f"; and {len(doubts) - _DOUBTS_SHOWN} more" if len(doubts) > _DOUBTS_SHOWN else ""
            count = self._doubts.rows
            counted = f" {count} row{'s' * (count > 1)} may be misread:" if count else ""
            logger.warning("%s:%s %s%s", file, counted, "; ".join(doubts[:_DOUBTS_SHOWN]), more)
        whole = Dataset(
            name="questions", questions=questions, folder=self._folder, key_field="source", malformed=malformed
        )
        return with_digests(replace(whole, read=read))


_NAMELESS = "(a column without a name)"
_SKIP = "Mend them, or leave them out: --skip-bad-rows, skip_bad_rows in YAML and Python."


class _Cells:
    """The cells of one row by column."""

    def __init__(
        self, row: FileRow, columns: Mapping[str, str], used: dict[str, dict[str, None]], doubts: Doubts
    ) -> None:
        self._row, self.number = row, row.number
        self._cells = {name.strip().casefold(): (name, cell) for name, cell in row.cells}
        self._columns, self._used, self._doubts = columns, used, doubts

    @staticmethod
    def fault_of(names: Sequence[str], columns: Mapping[str, str]) -> str:
        """Return what is wrong with the names of columns; ``""`` if nothing is."""
        there = f"{', '.join(name.strip()[:_NAME_SHOWN] for name in names[:_NAMES_SHOWN]):.300}"
        known = {name.strip().casefold() for name in names}
        if missing := [name for name in columns.values() if name.strip() and name.strip().casefold() not in known]:
            return f"there is no column {missing[0]!r:.80}; there are {there}"
        found = [next(iter(_known_names(column, columns, known)), None) for column in get_args(Column)]
        if found[get_args(Column).index("question")] is None:
            return f"there is no column question; there are {there}. Name it: --columns question=NAME"
        twice = repeated_names([name.strip() for name in names])
        if repeated := next((name for name in found if name in twice), None):
            count = [name.strip().casefold() for name in names].count(repeated)
            return f"there are {count} columns {repeated!r}. Rename all but one"
        return ""

    def question(self) -> str:
        """Return the question."""
        try:
            return question_text(self._cell("question"))
        except ValueError as error:
            raise self._placed("question", error) from error

    def texts(self, column: Column, separator: str) -> CellTexts:
        """Return the texts in a cell."""
        try:
            cell = self._cell(column)
            parts = "" if separator == NOT_LISTED else separator
            found = cell_texts(cell, parts, names_documents=column == "supporting")
        except ValueError as error:
            raise self._placed(column, error) from error
        if not separator and isinstance(cell, str) and found.texts == (cell.strip(),) and LISTED in cell:
            kept = f"{self._used[column]!r} holds texts with {LISTED!r}, which parts nothing in JSON: --separator"
            told = f"{kept} '{LISTED}' if it parts them, {NOT_LISTED} if not"
            self._doubts.add("bar", told, self.number, value=cell.strip())
        if listed := next(filter(looks_like_a_list, found.texts), None):
            told = (
                f"texts of {self._name(column)!r} look like lists, and are read as texts: put those of a list in quotes"
            )
            self._doubts.add("literal", told, self.number, value=listed)
        if found.is_split and column == "answer":
            self._doubts.add("split", f"cells of {self._name(column)!r} are split at {separator!r}", self.number)
        return found

    def text(self, column: Column) -> str:
        """Return the text of a cell; ``""`` where the column is missing or the cell empty."""
        try:
            return one_text(self._cell(column))
        except ValueError as error:
            raise self._placed(column, error) from error

    def _cell(self, column: Column) -> object:
        names = _known_names(column, self._columns, self._cells)
        if not names:
            return None
        filled = (name for name in names if not is_missing(self._cells[name][1]))
        own, cell = self._cells[next(filled, names[0])]
        self._used.setdefault(column, {})[own] = None
        if fault := self._row.faults.get(own):
            raise ValueError(fault)
        if doubt := self._row.doubts.get(own):
            self._doubts.add("shown", f"{own!r} holds {doubt}", self.number, value=str(cell))
        if (above := self._row.merged.get(own)) and column == "question":
            raise ValueError(
                f"its question is the cell of row {above}, merged over both. Write several answers into one cell, or "
                "take the cells apart"
            )
        if above:
            told = f"cells of {own!r} are merged over rows, and count in each of them"
            self._doubts.add("merged", told, self.number)
        return cell

    def _name(self, column: Column) -> str:
        """Return the name that this row has for a column."""
        known = _known_names(column, self._columns, self._cells)
        return self._cells[known[0]][0] if known else column

    def _placed(self, column: Column, error: ValueError) -> ValueError:
        said, name = str(error), self._name(column)
        if said.endswith(NAME_ANOTHER):
            none = f", or take none: --columns {column}=" if column != "question" else ""
            said = f"{said}: --columns {column}=NAME{none}"
        if said.startswith("its question"):
            return error
        return ValueError(f"{column}{f' (column {name!r})' * (name != column)}: {said}")


def _known_names(column: Column, columns: Mapping[str, str], known: Container[str]) -> list[str]:
    """Return the case-folded names that a column has among those of a file, the likeliest first."""
    names = (columns[column].strip().casefold(),) if column in columns else USUAL_NAMES[column]
    return [name for name in names if name and name in known]


def _id(question: EvalQuestion) -> str:
    return question.id


def _sources_of(folder: Path) -> frozenset[str]:
    if not folder.is_dir():
        raise LoadingError(f"There is no folder {folder}. Name the folder of the documents, or a collection.")
    return frozenset(file.source for file in scan_files(folder).files)
