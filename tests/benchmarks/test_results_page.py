"""Our figures on the page of results are those of the questions in their files."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
OURS = (FOLDER / "results.md").read_text(encoding="utf-8").partition("\n## Published")[0]
ROWS = [[cell.strip() for cell in line.strip("| ").split("|")] for line in OURS.splitlines() if ".csv)" in line]
COLUMNS = {
    "naive, top-k 3": "naive",
    "naive, top-k 5": "naive",
    "naive, as many tokens as judge": "naive_matched",
    "ircot": "ircot_matched",
    "judge, chunk by chunk": "judge",
    "judge, again": "again",
}


def questions_of(file: str, data_set: str) -> list[dict[str, str]]:
    with (FOLDER / file).open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    name = data_set.partition(" ")[0].casefold()
    return [row for row in rows if "set" not in row or (row["set"], row["judge"]) == (name, "per chunk")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}, {row[1]}, {row[2]}")
def test_a_figure_is_the_mean_of_its_questions(row: list[str]) -> None:
    data_set, _, system, evidence, calls, tokens, file = row
    questions = questions_of(file.partition("(")[2].rstrip(")"), data_set)
    assert len(questions) == int(data_set.split()[1])
    means = [
        fmean(float(each[f"{COLUMNS[system]}_{what}"]) for each in questions)
        for what in ("evidence", "calls", "tokens")
    ]
    assert [evidence, calls, tokens] == [f"{100 * means[0]:.1f}", f"{means[1]:.2f}", f"{means[2]:,.0f}"]


def test_every_row_names_its_file() -> None:
    assert len(ROWS) == sum(line.startswith(("| HotpotQA", "| MuSiQue")) for line in OURS.splitlines()) == 12
