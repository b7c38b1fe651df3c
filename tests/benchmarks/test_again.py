"""The page on asking again says what its table holds, and the comparison is at equal spending."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean

import pandas as pd
import pytest

from benchmarks.again import BUDGETS, compared

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
PAGE = (FOLDER / "again.md").read_text(encoding="utf-8")


def test_figures_of_the_page_are_those_of_its_table() -> None:
    with (FOLDER / "again.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in PAGE.splitlines() if line[:3] == "| ."]
    for row, cells in zip(rows, lines, strict=True):
        told = [*cells[3:5], cells[5].lstrip("+"), *cells[6].split(" to "), cells[7].partition(": ")[2]]
        names = ("again", "breadth", "gain", "low", "high", "again_most")
        assert (cells[0], cells[1]) == (f"{float(row['retry']):.2f}".lstrip("0"), row["equal"])
        assert [f"{float(row[name]):.3f}".lstrip("0") for name in names] == told
    by_calls = [f"{float(row['gain']):.3f}".lstrip("0") for row in rows if row["equal"] == "calls"]
    assert f"finds {by_calls[0]} more at as many calls if a second" in PAGE
    assert f"and {by_calls[1]} if in half of them" in PAGE


def test_figures_of_whole_runs_are_those_of_their_questions() -> None:
    with (FOLDER / "noisy_writer.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    own = {name.removesuffix("_evidence"): name for name in rows[0] if name.endswith("_evidence")}
    lines = [line for line in PAGE.splitlines() if line.startswith(("| naive", "| ircot", "| judge"))]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    assert len(rows) == 100
    for system, (_, *told) in zip(own, cells, strict=True):
        evidence, calls, tokens = (
            fmean(float(row[f"{system}_{what}"]) for row in rows) for what in ("evidence", "calls", "tokens")
        )
        assert told[:3] == [f"{100 * evidence:.1f} %", f"{calls:.1f}", f"{tokens:,.0f}"]
        if system != "again":
            gain = fmean(float(row["again_evidence"]) - float(row[f"{system}_evidence"]) for row in rows)
            assert told[3].startswith(f"{100 * gain:+.1f} (")


def test_again_is_mixed_to_what_breadth_spends_at_most() -> None:
    """At the 10 calls of breadth, again stands half way between its budgets of 5 and 15 calls."""
    rows = pd.DataFrame(
        [
            {
                "question": question,
                "policy": policy,
                "budget": budget,
                "complete": done,
                "calls": calls,
                "tokens": calls,
            }
            for question in ("a", "b")
            for policy, steps in (("breadth", (5, 10)), ("again", (5, 15)))
            for budget in BUDGETS
            for calls, done in [((steps[0], 0.0) if budget < 60 else (steps[1], 1.0 if policy == "again" else 0.25))]
        ]
    )
    for row in compared(rows, {"a": "a", "b": "b"}):
        assert (row["spent"], row["again"], row["breadth"]) == pytest.approx((10, 0.5, 0.25))
        assert row["gain"] == pytest.approx(0.25)
