"""Parsers from the bytes of a table or a JSON file to its rows, each a text of JSON, for files of questions.

They run within the limits of ``file_parsers.LoadLimits`` and in the same process as the parsers of documents. A row
that is blank is left out; the number of each is in its metadata, as a spreadsheet shows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from ..errors import LoadingError
from ..reading.delimited_text import SEPARATORS, table_rows
from ..reading.json_rows import JsonRow, json_line_rows, json_rows
from ..reading.rich_strings import with_plain_strings
from ..reading.workbook_rows import WorkbookRow, workbook_rows, workbook_sheet

MAX_CELLS = 20_000_000
"""Most cells of a table, empty ones between and beside filled ones included."""

MAX_ROWS = 2_000_000
"""Most rows of a table, blank ones included; Excel has half as many."""

Row = tuple[str, dict[str, object]]
"""A row as JSON, and its metadata: ``row``, its number; ``fault``, why it is none; and, as ``WorkbookRow`` has them,
``is_hidden`` and by place of a cell ``doubts``, ``faults`` and ``merged``. A workbook begins with a row 0 without
cells, whose metadata has ``sheet``, ``others``, ``hidden`` and ``struck``: the sheet's name, the other names, its
hidden columns, and the number of texts with struck-through parts.
"""


def parse_workbook(data: bytes) -> Iterable[Row]:
    """Yield the name of the first visible sheet of an Excel file, and its rows."""
    sheet = workbook_sheet(data)
    data, struck = with_plain_strings(data)
    hidden = sorted(sheet.hidden_columns)
    yield "[]", {"row": 0, "sheet": sheet.name, "others": [*sheet.others], "hidden": hidden, "struck": struck}
    yield from _filled(enumerate(workbook_rows(data, sheet), start=1))


def _parse_table(data: bytes, *, separator: str) -> Iterable[Row]:
    text = data.decode("utf-8")
    yield from _filled((number, WorkbookRow(cells=cells)) for number, cells in table_rows(text, separator))


def _filled(rows: Iterable[tuple[int, WorkbookRow]]) -> Iterator[Row]:
    count = 0
    for number, row in rows:
        count += len(row.cells)
        if number > MAX_ROWS:
            raise LoadingError(f"it has more than {MAX_ROWS:,} rows, with the blank ones; delete those, or split it")
        if count > MAX_CELLS:
            raise LoadingError(f"its first {number} rows have more than {MAX_CELLS:,} cells; delete the empty ones")
        if row.faults or any(map(str.strip, row.cells)):
            remarks = {
                "doubts": row.doubts,
                "faults": row.faults,
                "merged": row.merged,
                "is_hidden": row.is_hidden,
            }
            told = {name: each for name, each in remarks.items() if each}
            yield json.dumps(row.cells), {"row": number, **told}


def _parse_objects(data: bytes) -> Iterable[Row]:
    names, _, text = data.decode("utf-8").partition("\n")
    yield from map(_as_row, json_rows(text, *json.loads(names)))


def _parse_lines(data: bytes) -> Iterable[Row]:
    yield from map(_as_row, json_line_rows(data.decode("utf-8")))


def _as_row(row: JsonRow) -> Row:
    number, content, fault = row
    return json.dumps(content), {"row": number, **({"fault": fault} if fault else {})}


def table_parser(separator: str) -> str:
    """Return the name of the parser of tables with a separator."""
    return f"cells{separator}"


ROW_PARSERS: Mapping[str, Callable[[bytes], Iterable[Row]]] = {
    "workbook": parse_workbook,
    **{table_parser(separator): partial(_parse_table, separator=separator) for separator in SEPARATORS},
    "objects": _parse_objects,
    "lines": _parse_lines,
}
"""Parsers by name: an Excel file; a UTF-8 table by its separator; JSON, below a line with a JSON list of the names that
a question may have and of those of an id; and JSON Lines.
"""
