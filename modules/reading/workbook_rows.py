"""Rows of a workbook as texts, as the cells of its first visible sheet show them; merged cells and what is hidden."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.parsers import expat

from ..errors import LoadingError
from .rich_strings import without_escapes
from .shown_numbers import shown_value

if TYPE_CHECKING:
    from openpyxl.cell.read_only import ReadOnlyCell

MAX_UNPACKED_BYTES = 128_000_000
"""Most bytes that the parts of a workbook may unpack to."""
MAX_PARTS = 5_000
"""Most parts of a workbook: sheets, pictures and the like."""
MAX_MERGED = 200_000
"""Most merged cells of a sheet."""
_ROWS, _COLUMNS = 1_048_576, 16_384
"""Rows and columns of a sheet of Excel."""
_SHEETS = "xl/worksheets/"
_FORMULA = (b"<f>", b"<f ", b"<f/", b":f>", b":f ", b":f/")
_MARKS = (b"hidden", b"mergeCell")
_LONGEST_MARK = max(map(len, _MARKS))
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class MergedCells:
    """A cell that spans several; rows and columns count from 0."""

    first_row: int
    last_row: int
    first_column: int
    last_column: int


@dataclass(frozen=True, kw_only=True)
class WorkbookSheet:
    """The first visible sheet of a workbook, or the first one if none is visible."""

    name: str
    others: tuple[str, ...]
    """Names of the other sheets of cells, in order, hidden ones included."""
    hidden_rows: frozenset[int] = frozenset()
    """Rows that it does not show, counted from 0."""
    hidden_columns: frozenset[int] = frozenset()
    """Columns that it does not show, counted from 0."""
    merged: tuple[MergedCells, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkbookRow:
    """One row of a sheet."""

    cells: list[str]
    """Texts of the cells; an empty one is ``""``."""
    doubts: dict[int, str] = field(default_factory=dict)
    """By place of a cell, what is doubtful of its text."""
    faults: dict[int, str] = field(default_factory=dict)
    """By place of a cell, why it has no text: an error, or a formula that was never computed."""
    merged: dict[int, int] = field(default_factory=dict)
    """By place of a cell that is merged with one above, the number of the row where that one stands, from 1."""
    is_hidden: bool = False
    """Whether the sheet does not show the row."""


def workbook_sheet(data: bytes) -> WorkbookSheet:
    """Return the sheet of an Excel file that is read, without its cells.

    Raises:
        LoadingError: The file has more parts, or unpacks to more bytes, than allowed, or has no sheet of cells; the
            message is only the reason.
    """
    from openpyxl.reader.excel import ExcelReader  # noqa: PLC0415 - only workbooks need it

    _check_parts(data)
    reader = ExcelReader(io.BytesIO(data), read_only=True, keep_links=False)
    with closing(reader.archive):
        reader.read_manifest()
        reader.read_workbook()
        names = frozenset(reader.valid_files)
        found = [
            (sheet.name, sheet.state, part.target)
            for sheet, part in reader.parser.find_sheets()
            if part.target in names and "chartsheet" not in part.Type
        ]
        if not found:
            raise LoadingError("it has no sheet of cells")
        place = next((place for place, (_, state, _) in enumerate(found) if state == "visible"), 0)
        name, _, part = found[place]
        marks = _SheetMarks()
        if _holds(reader.archive, part, _MARKS):
            marks.read(reader.archive, part)
    return WorkbookSheet(
        name=name,
        others=tuple(other for other, _, _ in found[:place] + found[place + 1 :]),
        hidden_rows=frozenset(marks.hidden_rows),
        hidden_columns=frozenset(marks.hidden_columns),
        merged=tuple(marks.merged),
    )


def workbook_rows(data: bytes, sheet: WorkbookSheet) -> Iterator[WorkbookRow]:
    """Yield the rows of a sheet of an Excel file, blank ones included.

    A cell that is merged over rows stands in each of them that has another cell, from the row below the header on; one
    that is merged over columns stands in the first of them.

    Args:
        data: The file.
        sheet: What ``workbook_sheet`` returned for it.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        has_formulas = any(_holds(parts, name, _FORMULA) for name in parts.namelist() if name.startswith(_SHEETS))
    spans, has_header = _Spans(sheet.merged), False
    with ExitStack() as workbooks:
        written = _cells(data, sheet, workbooks, computed=False) if has_formulas else iter(())
        for number, cells in enumerate(_cells(data, sheet, workbooks, computed=True)):
            row = _row_of(cells, next(written, ()), is_hidden=number in sheet.hidden_rows)
            is_filled = bool(row.faults) or any(map(str.strip, row.cells))
            if has_header:
                spans.fill(number, row, is_filled=is_filled)
            has_header = has_header or is_filled
            yield row


def _cells(
    data: bytes, sheet: WorkbookSheet, workbooks: ExitStack, *, computed: bool
) -> Iterator[Sequence[ReadOnlyCell]]:
    """Return the rows of a sheet, with what its formulas gave or with the formulas."""
    import openpyxl  # noqa: PLC0415 - only workbooks need it

    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=computed)
    workbooks.callback(workbook.close)
    cells = next(each for each in workbook.worksheets if each.title == sheet.name)
    cells.reset_dimensions()  # some programs write a range that is too small, and what is outside would be lost
    return iter(cells.iter_rows())


def _check_parts(data: bytes) -> None:
    """Refuse a file that unpacks to too much."""
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        sizes = [part.file_size for part in parts.infolist()]  # zipfile enforces them
    if len(sizes) > MAX_PARTS:
        raise LoadingError(f"it has {len(sizes)} parts; allowed are {MAX_PARTS}")
    if sum(sizes) > MAX_UNPACKED_BYTES:
        allowed = f"{MAX_UNPACKED_BYTES / 1e6:.0f} MB"
        raise LoadingError(f"it unpacks to {sum(sizes) / 1e6:.0f} MB; allowed are {allowed}")


def _holds(parts: zipfile.ZipFile, name: str, marks: Sequence[bytes]) -> bool:
    """Return whether one of some bytes stands in a part."""
    end = b""
    with parts.open(name) as stream:
        while block := stream.read(_BLOCK_BYTES):
            if any(mark in end + block for mark in marks):
                return True
            end = block[1 - _LONGEST_MARK :]
    return False


class _SheetMarks:
    """Finds what openpyxl leaves out where it reads row by row: hidden rows and columns, and merged cells."""

    def __init__(self) -> None:
        self.hidden_rows: set[int] = set()
        self.hidden_columns: set[int] = set()
        self.merged: list[MergedCells] = []
        self._row = -1

    def read(self, parts: zipfile.ZipFile, name: str) -> None:
        """Read the part of a sheet."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        with parts.open(name) as stream:
            try:
                parser.ParseFile(stream)
            except (expat.ExpatError, ValueError) as error:
                raise LoadingError(f"its sheet is not XML that can be read ({error})") from error

    def _start(self, name: str, marks: dict[str, str]) -> None:
        match name.rpartition(":")[2]:
            case "row":
                self._row = int(marks.get("r", self._row + 2)) - 1
                if _is_true(marks.get("hidden")) and self._row < _ROWS:
                    self.hidden_rows.add(self._row)
            case "col" if _is_true(marks.get("hidden")):
                first, last = int(marks.get("min", 1)), int(marks.get("max", _COLUMNS))
                self.hidden_columns.update(range(max(first, 1) - 1, min(last, _COLUMNS)))
            case "mergeCell":
                self._merge(marks.get("ref", ""))

    def _merge(self, ref: str) -> None:
        from openpyxl.utils import range_boundaries  # noqa: PLC0415 - only workbooks need it

        first_column, first_row, last_column, last_row = range_boundaries(ref)
        if len(self.merged) >= MAX_MERGED:
            raise LoadingError(f"its sheet has more than {MAX_MERGED:,} merged cells; take the sheet apart")
        if first_column and first_row and last_column and last_row:  # an open range such as A:B is none of cells
            self.merged.append(
                MergedCells(
                    first_row=first_row - 1,
                    last_row=last_row - 1,
                    first_column=first_column - 1,
                    last_column=last_column - 1,
                )
            )


def _is_true(mark: str | None) -> bool:
    return mark in ("1", "true")


class _Spans:
    """Writes a merged cell into the rows that it spans, going down the sheet."""

    def __init__(self, merged: Sequence[MergedCells]) -> None:
        self._starting: dict[int, list[MergedCells]] = {}
        for each in merged:
            self._starting.setdefault(each.first_row, []).append(each)
        self._open: dict[int, tuple[MergedCells, WorkbookRow]] = {}
        """By column of a span, and the row that it begins in."""

    def fill(self, number: int, row: WorkbookRow, *, is_filled: bool) -> None:
        """Write the spans that reach a row into its cells, unless it is blank; what a span hides is emptied."""
        if is_filled:  # a sheet may have a million blank rows
            self._open = {place: each for place, each in self._open.items() if number <= each[0].last_row}
            for span, top in self._open.values():
                _write(span, top, row)
        for span in self._starting.pop(number, ()):
            place = span.first_column
            _empty(row, place + 1, span.last_column)
            if place in row.faults or (place < len(row.cells) and row.cells[place].strip()):
                self._open[place] = span, row


def _write(span: MergedCells, top: WorkbookRow, row: WorkbookRow) -> None:
    """Write a span that begins in the row ``top`` into a row below."""
    place = span.first_column
    _empty(row, place, span.last_column)
    row.cells.extend([""] * (place + 1 - len(row.cells)))
    row.cells[place] = top.cells[place]
    row.merged[place] = span.first_row + 1
    for remarks, above in ((row.doubts, top.doubts), (row.faults, top.faults)):
        if place in above:
            remarks[place] = above[place]


def _empty(row: WorkbookRow, first: int, last: int) -> None:
    for place in range(first, min(last + 1, len(row.cells))):
        row.cells[place] = ""
        row.doubts.pop(place, None)
        row.faults.pop(place, None)


def _row_of(cells: Sequence[ReadOnlyCell], written: Sequence[ReadOnlyCell], *, is_hidden: bool) -> WorkbookRow:
    row = WorkbookRow(cells=[], is_hidden=is_hidden)
    for place, cell in enumerate(cells):
        value = cell.value
        if value is None:
            row.cells.append("")
            if place < len(written) and written[place].data_type == "f":
                row.faults[place] = "its formula was never computed: open the file in Excel, and save it"
        elif cell.data_type == "e":
            row.cells.append(str(value))
            row.faults[place] = f"it shows the error {value}"
        elif isinstance(value, str):
            row.cells.append(without_escapes(value))
        else:
            text, doubt = shown_value(value, str(cell.number_format))
            row.cells.append(text)
            if doubt:
                row.doubts[place] = doubt
    return row
