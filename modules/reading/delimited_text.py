"""Text tables: rows of CSV and TSV as Excel, pandas and people write them, every cell as it stands there."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from itertools import islice, pairwise

from ..errors import LoadingError, reason_of

SEPARATORS = ",;\t|"
"""What may separate cells; the first one wins where several fit alike."""
MAX_CELL_CHARACTERS = 16_000_000
_SAMPLED_ROWS = 200
_HEADER_CHARACTERS = 1_000_000
_MARK = "sep="
"""Start of a first line by which Excel names the separator."""

TableRow = tuple[int, list[str]]
"""Number of a row, from 1 and with the blank ones, and its cells."""


def table_rows(text: str, separator: str) -> Iterator[TableRow]:
    """Yield the rows of a table with their numbers, blank ones included.

    A quoted cell may hold separators and line breaks. In a table with tabs, quotes are letters like any other where
    every line has as many cells as the header, and where reading them as quotes would join lines or fail.

    Raises:
        LoadingError: A quoted cell is never closed or continues behind its quote, quotes may join what are rows of
            their own, or a cell is longer than ``MAX_CELL_CHARACTERS``; the message is only the reason, with the row.
    """
    rest, marked = _without_mark(text)
    first = 2 if marked else 1
    is_exact, suspect = _suspect_of(rest, separator, first) if '"' in rest else (True, "")
    if separator == "\t" and is_exact and (suspect or '"' not in rest):
        return enumerate(_plain_rows(rest, separator), start=first)
    if suspect:
        raise LoadingError(suspect)
    return _quoted_rows(rest, separator, first)


def separator_of(text: str, names: Collection[str], *, usual: str = ",") -> str:
    """Return the separator by which the header has the most of ``names``, or else the most cells.

    Args:
        text: The table.
        names: Names that columns may have, case-folded.
        usual: The separator that wins where several do alike.
    """
    rest, marked = _without_mark(text)
    if marked:
        return marked
    head = rest.lstrip("\r\n")[:_HEADER_CHARACTERS]

    def columns_by(separator: str) -> tuple[int, int]:
        header = _header(head, separator)
        return sum(name.strip(' "').casefold() in names for name in header), len(header)

    return max(usual + SEPARATORS, key=columns_by)


def fitting_separator(text: str) -> str:
    """Return the separator by which the first rows have as many cells as the header, the most of them.

    A comma counts for less where every comma of these rows is a decimal one.
    """
    rest, marked = _without_mark(text)
    return marked or max(SEPARATORS, key=lambda separator: _fit(rest, separator))


def _fit(text: str, separator: str) -> tuple[bool, bool, int]:
    """Return whether rows and header have as many cells, whether they could, and the number of these."""
    rows: list[list[str]] = []
    try:
        found = (row for _, row in table_rows(text, separator) if any(map(str.strip, row)))
        rows = list(islice(found, _SAMPLED_ROWS))
    except LoadingError:
        return False, False, 0
    width = len(rows[0]) if rows else 0
    below = [len(row) for row in rows[1:]]
    if width < 2 or (separator == "," and below and all(map(_is_split_number, rows[1:]))):
        return False, False, 0
    return all(cells == width for cells in below), all(cells <= width for cells in below), width


def _is_split_number(row: list[str]) -> bool:
    """Return whether each comma between these cells has a digit on both sides, and a semicolon stands beside it."""
    pairs = pairwise(row)
    return len(row) > 1 and ";" in "".join(row) and all(a[-1:].isdigit() and b[:1].isdigit() for a, b in pairs)


def _without_mark(text: str) -> tuple[str, str]:
    """Return the table without the line that names its separator, and that separator or ""."""
    end = text.find("\n", 0, 20)
    line = text[: end if end >= 0 else 20].strip("\r\n\"' ")
    # A tab would be stripped with the other white space.
    if line.casefold().startswith(_MARK) and len(line) == len(_MARK) + 1 and line[-1] in SEPARATORS and end >= 0:
        return text[end + 1 :], line[-1]
    return text, ""


def _plain_rows(text: str, separator: str) -> Iterator[list[str]]:
    """Yield the lines, split wherever the separator stands."""
    for line in io.StringIO(text, newline=""):
        yield line.rstrip("\r\n").split(separator)


def _quoted_rows(text: str, separator: str, first: int) -> Iterator[TableRow]:
    # The limit is one of the whole process; it is never lowered, so that threads do not take it from each other.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL_CHARACTERS))
    header = _header(text[:_HEADER_CHARACTERS].lstrip("\r\n"), separator)
    spaced = separator != "\t" and len(header) > 1 and all(name.startswith(" ") for name in header[1:])
    # newline="" leaves line ends to the csv module, which handles quoted ones.
    lines = io.StringIO(text, newline="")
    rows = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=spaced)
    number = first
    try:
        for row in rows:
            yield number, row
            number += 1
    except csv.Error as error:
        raise LoadingError(
            f"row {number} is broken: {reason_of(error)}. Write a quote within a quoted cell twice"
        ) from error


def _suspect_of(text: str, separator: str, first: int) -> tuple[bool, str]:
    """Return whether all lines have as many cells as the header, and why quotes may enclose no cells, or ""."""
    widths = (
        line.count(separator) + 1 for line in io.StringIO(text, newline="") if line.replace(separator, " ").strip()
    )
    width = next(widths, 0)
    is_exact = all(each == width for each in widths)
    try:
        for number, row in _quoted_rows(text, separator, first):
            if width > 1 and any(_joins_rows(cell, separator, is_exact=is_exact) for cell in row):
                return is_exact, f"row {number} holds a line break between quotes that may be letters of two rows"
            if is_exact and separator == "\t" and len(row) > width:
                return is_exact, f"row {number} has {len(row)} cells"
    except LoadingError as error:
        return is_exact, str(error)
    return is_exact, ""


def _joins_rows(cell: str, separator: str, *, is_exact: bool) -> bool:
    return ("\n" in cell or "\r" in cell) and (is_exact or (separator == "\t" and "\t" in cell))


def _header(head: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(head, newline=""), delimiter=separator), [])
    except csv.Error:
        return []
