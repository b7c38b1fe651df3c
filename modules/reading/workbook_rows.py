"""Rows of a workbook as texts, as the cells of its first sheet show them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import LoadingError
from .shown_numbers import shown_value

if TYPE_CHECKING:
    from openpyxl.cell.read_only import ReadOnlyCell

MAX_UNPACKED_BYTES = 128_000_000
"""Most bytes that the parts of a workbook may unpack to."""
MAX_PARTS = 5_000
"""Most parts of a workbook: sheets, pictures and the like."""
_SHEETS = "xl/worksheets/"
_FORMULA = (b"<f>", b"<f ", b"<f/")
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class WorkbookRow:
    """One row of a sheet."""

    cells: list[str]
    """Texts of the cells; an empty one is ``""``."""
    doubts: dict[int, str] = field(default_factory=dict)
    """By place of a cell, what is doubtful of its text."""
    faults: dict[int, str] = field(default_factory=dict)
    """By place of a cell, why it has no text: an error, or a formula that was never computed."""


def workbook_rows(data: bytes) -> Iterator[WorkbookRow]:
    """Yield the rows of the first sheet of an Excel file, blank ones included.

    Raises:
        LoadingError: It has more parts, or unpacks to more bytes, than allowed; the message is only the reason.
    """
    has_formulas = _checked_parts(data)
    with ExitStack() as workbooks:
        written = _sheet(data, workbooks, computed=False) if has_formulas else iter(())
        for cells in _sheet(data, workbooks, computed=True):
            yield _row_of(cells, next(written, ()))


def _sheet(data: bytes, workbooks: ExitStack, *, computed: bool) -> Iterator[Sequence[ReadOnlyCell]]:
    """Return the rows of the first sheet, with what its formulas gave or with the formulas."""
    import openpyxl  # noqa: PLC0415 - only workbooks need it

    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=computed)
    workbooks.callback(workbook.close)
    if not workbook.worksheets:
        raise LoadingError("it has no sheet of cells")
    sheet = workbook.worksheets[0]
    sheet.reset_dimensions()  # some programs write a range that is too small, and what is outside would be lost
    return iter(sheet.iter_rows())


def _checked_parts(data: bytes) -> bool:
    """Refuse a file that unpacks to too much; return whether a sheet has a formula."""
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        sizes = [part.file_size for part in parts.infolist()]  # zipfile enforces them
        if len(sizes) > MAX_PARTS:
            raise LoadingError(f"it has {len(sizes)} parts; allowed are {MAX_PARTS}")
        if sum(sizes) > MAX_UNPACKED_BYTES:
            allowed = f"{MAX_UNPACKED_BYTES / 1e6:.0f} MB"
            raise LoadingError(f"it unpacks to {sum(sizes) / 1e6:.0f} MB; allowed are {allowed}")
        return any(_has_formula(parts, name) for name in parts.namelist() if name.startswith(_SHEETS))


def _has_formula(parts: zipfile.ZipFile, name: str) -> bool:
    end = b""
    with parts.open(name) as stream:
        while block := stream.read(_BLOCK_BYTES):
            if any(mark in end + block for mark in _FORMULA):
                return True
            end = block[-3:]
    return False


def _row_of(cells: Sequence[ReadOnlyCell], written: Sequence[ReadOnlyCell]) -> WorkbookRow:
    row = WorkbookRow(cells=[])
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
            row.cells.append(value)
        else:
            text, doubt = shown_value(value, str(cell.number_format))
            row.cells.append(text)
            if doubt:
                row.doubts[place] = doubt
    return row
