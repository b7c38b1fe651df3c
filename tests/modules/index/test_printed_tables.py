"""Values of tables that a browser has printed stand under their heads in the text of the page."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from judgetree.modules.index.parsers.pdf.document import parse_pdf
from tests.browser import needs_browser
from tests.modules.index.printed_tables import (
    FAMILIES,
    NO_TABLES,
    OTHER_TABLES,
    PrintedTable,
    Style,
    printed,
    spaced,
    tables_of,
)

_EACH = 25
_MOST_WRONG = 10
"""Of all tables in DejaVu's wider letters, which nearly touch those of the next cell where that is one pixel away."""
_PROSE = "The herons were counted in the spring by Ada and her brother, who had a boat and nothing else to do."
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
    "turned heads": Style(are_heads_turned=True),
    "lines, turned heads": Style(is_ruled=True, are_heads_turned=True),
    "lines": Style(is_ruled=True),
    "lines, first cells of several lines": Style(is_ruled=True, is_wrapped=True),
    "lines, turned": Style(is_ruled=True, turn=90),
    "lines, heads over several columns": Style(is_ruled=True, is_grouped=True),
}


def texts_of(pages: Sequence[str]) -> list[str]:
    """Return the texts of HTML pages as printed, those without a word left out."""
    return [piece[0] for piece in parse_pdf(printed(pages)) if isinstance(piece, tuple) and piece[0].strip()]


def tables_read(family: str) -> dict[str, list[tuple[PrintedTable, str]]]:
    """The tables of each style in a font, each with the text of its page."""
    tables = [
        (name, table)
        for at, name in enumerate(STYLES)
        for table in tables_of(STYLES[name], _EACH, seed=at, family=family)
    ]
    pages = texts_of([table.html for _, table in tables])
    read: dict[str, list[tuple[PrintedTable, str]]] = {}
    for (name, table), text in zip(tables, pages, strict=True):
        read.setdefault(name, []).append((table, text))
    return read


@pytest.fixture(scope="module")
def read_tables() -> dict[str, list[tuple[PrintedTable, str]]]:
    """Those in Liberation's fonts."""
    return tables_read("Liberation")


@needs_browser
@pytest.mark.parametrize("name", STYLES)
def test_values_stand_under_their_heads(name: str, read_tables: dict[str, list[tuple[PrintedTable, str]]]) -> None:
    wrong = [(table.misplaced_in(text), text) for table, text in read_tables[name] if table.misplaced_in(text)]
    assert not wrong, f"{len(wrong)} of {_EACH} tables; one has {wrong[0][0]} elsewhere:\n{wrong[0][1]}"


@pytest.mark.slow
@needs_browser
def test_values_stand_under_their_heads_in_another_font() -> None:
    wrong = [text for each in tables_read("DejaVu").values() for table, text in each if table.misplaced_in(text)]
    assert len(wrong) <= _MOST_WRONG, f"{len(wrong)} of {_EACH * len(STYLES)} tables:\n" + "\n\n".join(wrong)


@pytest.fixture(scope="module")
def read_pages() -> dict[str, str]:
    """The texts of pages without tables and of special tables."""
    pages = {**NO_TABLES, **{name: f"<p>{_PROSE}</p>{html}" for name, (html, _) in OTHER_TABLES.items()}}
    return dict(zip(pages, texts_of(list(pages.values())), strict=True))


@needs_browser
@pytest.mark.parametrize("name", NO_TABLES)
def test_what_is_no_table_is_read_as_none(name: str, read_pages: dict[str, str]) -> None:
    assert "|" not in read_pages[name]


@needs_browser
@pytest.mark.parametrize("name", OTHER_TABLES)
def test_special_tables_keep_their_columns(name: str, read_pages: dict[str, str]) -> None:
    text = " ".join(read_pages[name].split())
    assert OTHER_TABLES[name][1] in text, read_pages[name]


@needs_browser
@pytest.mark.parametrize("family", FAMILIES)
def test_spaced_letters_are_words(family: str) -> None:
    """Up to a tenth of the size of the letters."""
    pages = [spaced(family, f"{hundredths / 100}em") for hundredths in range(2, 11)]
    for (_, said), text in zip(pages, texts_of([page for page, _ in pages]), strict=True):
        assert [each for each in said if each not in text] == [], text
