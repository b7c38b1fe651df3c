"""The page of parts, computed again from its rows without our statistics."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import numpy as np
import pytest

from experiments.parts import PARTS

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
PAGE = (FOLDER / "parts.md").read_text(encoding="utf-8")
with (FOLDER / "parts.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
SETS = {"HotpotQA 500": "hotpotqa", "MuSiQue 100": "musique"}
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith(tuple(f"| {name} |" for name in SETS))
]
SHORT = {"all ideal": "ideal", **{words: short for short, (words, _) in PARTS.items()}}


def test_all_parts_of_both_sets_are_told() -> None:
    assert [cells[:2] for cells in TABLE] == [[name, part] for name in SETS for part in SHORT]


@pytest.mark.parametrize("cells", TABLE, ids=lambda cells: " ".join(cells[:2]))
def test_a_line_is_that_of_its_questions(cells: list[str]) -> None:
    rows = [row for row in ROWS if row["set"] == SETS[cells[0]]]
    evidence, calls, tokens = (
        np.array([float(row[f"{SHORT[cells[1]]}_{figure}"]) for row in rows])
        for figure in ("evidence", "calls", "tokens")
    )
    differences = evidence - np.array([float(row["ideal_evidence"]) for row in rows])

    assert len(rows) == len({row["id"] for row in rows}) == int(cells[0].split()[1])
    assert cells[2:5] == [f"{100 * evidence.mean():.1f} %", f"{calls.mean():.1f}", f"{tokens.mean():,.0f}"]
    told = [float(each) for each in re.findall(r"[-+]\d+\.\d", cells[5])]
    if cells[1] == "all ideal":
        assert told == []
        return
    assert told[0] == pytest.approx(100 * differences.mean(), abs=0.051)
    if SETS[cells[0]] == "hotpotqa":  # Bonett and Price 2012
        n = len(differences)
        one, other = (((differences == sign).sum() + 1) / (n + 2) for sign in (1, -1))
        half = 1.959964 * math.sqrt((one + other - (one - other) ** 2) / (n + 2))
        assert told[1:] == pytest.approx([100 * (one - other - half), 100 * (one - other + half)], abs=0.051)
    else:  # 98 clusters of 100 questions: nearly a bootstrap of questions
        drawn = np.random.default_rng(5).integers(0, len(rows), size=(20_000, len(rows)))
        bounds = np.percentile(differences[drawn].mean(axis=1), (2.5, 97.5))
        assert told[1:] == pytest.approx(list(100 * bounds), abs=1.6)
