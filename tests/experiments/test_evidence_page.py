"""The page of evidence, computed again from its rows without our statistics."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from math import comb
from pathlib import Path
from statistics import fmean

import pytest

from experiments.evidence import JUDGE, MATCHED, SETS, is_whole

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
PAGE = (FOLDER / "evidence.md").read_text(encoding="utf-8")
FILE = FOLDER / "evidence.csv"
pytestmark = pytest.mark.skipif(not is_whole("local:"), reason="not all questions are recorded")


def by_system() -> Mapping[str, list[dict[str, str]]]:
    """The rows of each system, a row a question."""
    found = defaultdict(list)
    with FILE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[row["system"]].append(row)
    return found


def complete(rows: list[dict[str, str]]) -> dict[str, bool]:
    return {row["id"]: row["complete"] == "True" for row in rows}


def cells_of(start: str) -> list[str]:
    (line,) = [each for each in PAGE.splitlines() if each.startswith(f"| {start} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_line_is_that_of_its_questions() -> None:
    for name, rows in by_system().items():
        share = 100 * fmean(complete(rows).values())
        figures = [fmean(float(row[figure]) for row in rows) for figure in ("calls", "tokens", "sub_runs")]
        assert len(complete(rows)) == len(rows) == 200
        assert cells_of(name)[1:] == [f"{share:.1f} %", f"{figures[0]:.1f}", f"{figures[1]:,.0f}", f"{figures[2]:.1f}"]


def test_the_first_sentence_is_mcnemars_test() -> None:
    judge, plain = (complete(by_system()[name]) for name in (JUDGE, MATCHED))
    better, worse = (sum(judge[each] - plain[each] == sign for each in judge) for sign in (1, -1))
    n, least = better + worse, min(better, worse)
    p = min(1.0, 2 * sum(comb(n, each) for each in range(least + 1)) / 2**n)
    said = re.search(r"%: ([-+]\d+\.\d) \(.*?\) points \(p (< \.001|\d\.\d{3})\): (.*?)\.\*\*", PAGE)

    assert said is not None
    assert float(said[1]) == pytest.approx(100 * (better - worse) / len(judge), abs=0.051)
    assert said[2] == ("< .001" if p < 0.001 else f"{p:.3f}")
    assert said[3] == (("a gain" if better > worse else "a loss") if p < 0.05 else "no difference is shown")


@pytest.mark.parametrize("part", SETS)
def test_tokens_are_as_many_in_each_data_set(part: str) -> None:
    rows = by_system()
    judge, plain = ([each for each in rows[name] if each["part"] == part] for name in (JUDGE, MATCHED))
    cells = cells_of(SETS[part])

    assert fmean(float(each["tokens"]) for each in plain) >= fmean(float(each["tokens"]) for each in judge)
    assert cells[2:5] == ["100", *(f"{100 * fmean(complete(each).values()):.1f} %" for each in (judge, plain))]
