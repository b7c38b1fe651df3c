"""Values of tables that a browser has printed stand under their heads in the text of the page."""

from __future__ import annotations

import pytest

from judgetree.modules.index.parsers.pdf.document import parse_pdf
from tests.browser import needs_browser
from tests.modules.index.printed_tables import PrintedTable, Style, printed, tables_of

_EACH = 25
STYLES = {
    "little space": Style(paddings=(1, 3)),
    "more space": Style(paddings=(4, 12)),
    "nothing else on the page": Style(is_alone=True),
    "as wide as the page": Style(is_wide=True),
    "first cells of several lines": Style(is_wrapped=True),
    "first cells of several lines, little space": Style(is_wrapped=True, paddings=(1, 3)),
    "turned": Style(turn=90),
    "turned back": Style(turn=270),
    "turned, first cells of several lines": Style(turn=90, is_wrapped=True),
    "heads over several columns": Style(is_grouped=True),
    "lines": Style(is_ruled=True),
    "lines, first cells of several lines": Style(is_ruled=True, is_wrapped=True),
    "lines, turned": Style(is_ruled=True, turn=90),
    "lines, heads over several columns": Style(is_ruled=True, is_grouped=True),
}


@pytest.fixture(scope="module")
def read_tables() -> dict[str, list[tuple[PrintedTable, str]]]:
    """The tables of each style, each with the text of its page."""
    tables = [(name, table) for at, name in enumerate(STYLES) for table in tables_of(STYLES[name], _EACH, seed=at)]
    pages = [piece[0] for piece in parse_pdf(printed([table.html for _, table in tables])) if isinstance(piece, tuple)]
    read: dict[str, list[tuple[PrintedTable, str]]] = {}
    for (name, table), text in zip(tables, filter(str.strip, pages), strict=True):
        read.setdefault(name, []).append((table, text))
    return read


@needs_browser
@pytest.mark.parametrize("name", STYLES)
def test_values_stand_under_their_heads(name: str, read_tables: dict[str, list[tuple[PrintedTable, str]]]) -> None:
    wrong = [(table.misplaced_in(text), text) for table, text in read_tables[name] if table.misplaced_in(text)]
    assert not wrong, f"{len(wrong)} of {_EACH} tables; one has {wrong[0][0]} elsewhere:\n{wrong[0][1]}"
