"""Tables as CSV: raw for programs, or with texts that a spreadsheet would take for formulas made harmless."""

from __future__ import annotations

import csv

import pandas as pd

from ...modules.reading.spreadsheet_cells import to_cell

SPREADSHEET = "results.spreadsheet.csv"
"""Name of the copy of results.csv for people's spreadsheets."""
_BYTE_ORDER_MARK = "\ufeff"


def csv_of(table: pd.DataFrame, *, spreadsheet: bool = False) -> str:
    """Return a table as CSV without its index.

    For a spreadsheet, texts pass through ``to_cell`` and stand between quotes, since some spreadsheets split cells at
    semicolons, and a byte order mark tells Excel that it is UTF-8.
    """
    if not spreadsheet:
        return str(table.to_csv(index=False))
    safe = table.rename(columns=_cell).map(_cell)
    return _BYTE_ORDER_MARK + str(safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC))


def _cell(value: object) -> object:
    if isinstance(value, str):
        return to_cell(value)
    if isinstance(value, list | tuple | dict | set | frozenset):
        return to_cell(str(value))
    return value
