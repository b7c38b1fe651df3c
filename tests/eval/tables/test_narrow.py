"""Tables for a terminal of some width."""

from __future__ import annotations

import pytest

from judgetree.evaluation.tables.narrow import narrowed, sections_narrow
from judgetree.evaluation.tables.table import Section, Table

WIDE = Table.of(
    ["system", *(f"metric {place}" for place in range(12))],
    [
        [name, *(f"{place}.5 (1.0 to 9.0)" for place in range(12))]
        for name in ("llm", "naive(topk=26)", "ircot", "judge")
    ],
)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_wide_table_is_turned_into_parts_that_fit_and_hold_all(width: int) -> None:
    text = "\n\n".join(map(str, narrowed(WIDE, width)))
    assert max(map(len, text.splitlines())) <= width
    for row in WIDE.rows:
        assert str(row[0]) in text
    assert text.count(" (1.0 to 9.0)") == 4 * 12
    assert text.count("| metric 11 |") == len(list(narrowed(WIDE, width)))


def test_what_fits_stays_and_a_column_that_never_fits_is_there() -> None:
    small = Table.of(["system", "EM"], [["judge", "94.0"]])
    assert list(narrowed(small, 30)) == [small]
    (part,) = narrowed(small, 5)
    assert "| EM     | 94.0  |" in str(part)
    assert sections_narrow([Section(title="All", blocks=("A text that is longer than the width.", small))], 30) == (
        "## All\n\nA text that is longer than the width.\n\n| system | EM |\n| --- | --- |\n| judge | 94.0 |"
    )
