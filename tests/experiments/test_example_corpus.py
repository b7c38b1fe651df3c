"""The page of the example corpus, counted again from its rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from experiments.example_corpus import NAMES

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
PAGE = (FOLDER / "example-corpus.md").read_text(encoding="utf-8")
with (FOLDER / "example-corpus.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))


@pytest.mark.parametrize("system", NAMES)
def test_a_line_counts_its_rows(system: str) -> None:
    (line,) = [each for each in PAGE.splitlines() if each.startswith(f"| {NAMES[system]} |")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    found = [(float(each["right"]) == 1, float(each["evidence"]) == 1) for each in ROWS if each["system"] == system]

    assert len({each["id"] for each in ROWS}) == len(found) == 7
    assert cells[1] == f"{sum(right for right, _ in found)} of 7"
    assert cells[2:4] == [str(found.count((False, False))), str(found.count((False, True)))]
    assert all(each["status"] in {"answered", "refused"} for each in ROWS)
