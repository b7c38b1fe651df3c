"""Texts that spreadsheets would run as formulas get an apostrophe, numbers none, and all come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.reading.spreadsheet_cells import of_cell, to_cell

FORMULAS = [
    *(
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3+cmd|' /C calc'!A0",
        "@SUM(A1)",
        "=",
        "-",
        "--",
        "+",
        "- yes",
        "-x",
        "-5 apples",
    ),
    *("\t=1", "\r=1", "\n=1", "\tx", "\rx", "\nx", " =1", "   @x", "\u00a0=1", "\u3000=1", "\ufeff=1", "\u200b=1"),
    *(
        "＝1",
        "＋1",
        "－1",
        "＠x",
        ' "=1"',
        "'=1",
        "''=1",
        '"=1',
        "\x00=1",
        "=HYPERLINK(1)",
        "-3.5.x",
        "+1e",
        "-1-1",
        "-1=1",
    ),
    *("-1 -1", "+-1", "-%", "-５"),
]
NUMBERS = ["-3.5", "+1e5", "-5 %", "-5%", "+1", "-0", "-.5", "-,5", "-1.000,50", "+1,000.5", "-1 000", "-1e-5", "-12."]
TEXTS = ["", "a", "a=b", "1-2", "e-mail", "'tis", '"quoted"', "5", "1e5", "(=1)", "Ärger", "。=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_runs_is_marked_and_comes_back(text: str) -> None:
    assert to_cell(text) == f"'{text}"
    assert of_cell(to_cell(text)) == text


@pytest.mark.parametrize("text", [*NUMBERS, *TEXTS])
def test_numbers_and_other_texts_stay(text: str) -> None:
    assert to_cell(text) == text
    assert of_cell(text) == text


@given(st.text(st.sampled_from("=+-@＝'\"\t\n 1a.,%e"), max_size=12))
def test_every_text_comes_back(text: str) -> None:
    assert of_cell(to_cell(text)) == text
    assert to_cell(text) in (text, f"'{text}")
