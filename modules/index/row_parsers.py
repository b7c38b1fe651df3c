"""Parsers from the bytes of a table or a JSON file to its rows, each a text of JSON, for files of questions.

They run within the limits of ``file_parsers.LoadLimits`` and in the same process as the parsers of documents. A row
that is blank is left out; the number of each is in its metadata, as a spreadsheet shows it.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..errors import LoadingError

MAX_UNPACKED_BYTES = 128_000_000
"""Most bytes that the parts of a workbook may unpack to."""
MAX_PARTS = 5_000
"""Most parts of a workbook: sheets, pictures and the like."""
MAX_CELLS = 20_000_000
"""Most cells of a table, empty ones between and beside filled ones included."""

MAX_ROWS = 2_000_000
"""Most rows of a table, blank ones included; Excel has half as many."""

Row = tuple[str, dict[str, object]]


def parse_workbook(data: bytes) -> Iterable[Row]:
    """Yield the rows of the first sheet of an Excel file."""
    import openpyxl  # noqa: PLC0415 - only workbooks need it

    _refuse_large_parts(data)
    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    try:
        sheet = workbook.worksheets[0]
        sheet.reset_dimensions()  # some programs write a range that is too small, and what is outside would be lost
        yield from _cell_rows(sheet.iter_rows(values_only=True))
    finally:
        workbook.close()


def _refuse_large_parts(data: bytes) -> None:
    """Refuse a file that unpacks to too much; zipfile enforces the sizes that the directory gives."""
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        sizes = [part.file_size for part in parts.infolist()]
    if len(sizes) > MAX_PARTS:
        raise LoadingError(f"it has {len(sizes)} parts; allowed are {MAX_PARTS}")
    if sum(sizes) > MAX_UNPACKED_BYTES:
        allowed = f"{MAX_UNPACKED_BYTES / 1e6:.0f} MB"
        raise LoadingError(f"it unpacks to {sum(sizes) / 1e6:.0f} MB; allowed are {allowed}")


def _separated_by(separator: str) -> Callable[[bytes], Iterable[Row]]:
    def parse(data: bytes) -> Iterable[Row]:
        # newline="" leaves line ends to the csv module, which handles quoted ones.
        text = io.StringIO(data.decode("utf-8-sig"), newline="")
        try:
            yield from _cell_rows(csv.reader(text, delimiter=separator, strict=True))
        except csv.Error as error:
            raise LoadingError(f"{error}") from error

    return parse


def _cell_rows(rows: Iterable[Sequence[object]]) -> Iterator[Row]:
    cells = 0
    for number, row in enumerate(rows, start=1):
        cells += len(row)
        if number > MAX_ROWS:
            raise LoadingError(f"it has more than {MAX_ROWS:,} rows, with the blank ones; delete those, or split it")
        if cells > MAX_CELLS:
            raise LoadingError(f"its first {number} rows have more than {MAX_CELLS:,} cells; delete the empty ones")
        if number == 1 or any(cell is not None and str(cell).strip() for cell in row):
            yield json.dumps(row, default=str), {"row": number}


def _parse_objects(data: bytes) -> Iterable[Row]:
    content = json.loads(data.decode("utf-8-sig"))
    for number, item in enumerate(content if isinstance(content, list) else [content], start=1):
        yield json.dumps(item), {"row": number}


ROW_PARSERS: Mapping[str, Callable[[bytes], Iterable[Row]]] = {
    "workbook": parse_workbook,
    "cells,": _separated_by(","),
    "cells;": _separated_by(";"),
    "cells\t": _separated_by("\t"),
    "objects": _parse_objects,
}
"""Parsers by name: an Excel file, a table by its separator, and a list of JSON or one object."""
