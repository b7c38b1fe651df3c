"""The page of the confirmed configuration, computed again from its rows without our statistics."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
PAGE = (FOLDER / "links.md").read_text(encoding="utf-8")
with (FOLDER / "links.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
SETS = {"HotpotQA": ("hotpotqa", 171), "2WikiMultihopQA": ("2wiki", 100)}
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith(tuple(f"| {name} |" for name in SETS))
]
KINDS = [cells for cells in TABLE if len(cells) == 6]
TABLE = [cells for cells in TABLE if len(cells) == 7]


def column(data_set: str, system: str, name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in ROWS if row["set"] == data_set and row["system"] == system])


def least_passages(data_set: str) -> str:
    """The plain search with the fewest passages that has as many tokens as the judge."""
    spent = column(data_set, "judge", "tokens").mean()
    plain = sorted({row["system"] for row in ROWS} - {"judge"}, key=int)
    return next(each for each in plain if column(data_set, each, "tokens").mean() >= spent)


def exact_p(differences: np.ndarray) -> float:
    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    return min(1.0, 2 * sum(math.comb(won + lost, each) for each in range(min(won, lost) + 1)) / 2 ** (won + lost))


def bonett_price(differences: np.ndarray) -> list[float]:
    n = len(differences)
    one, other = (((differences == sign).sum() + 1) / (n + 2) for sign in (1, -1))
    half = 1.959964 * math.sqrt((one + other - (one - other) ** 2) / (n + 2))
    return [100 * (one - other - half), 100 * (one - other + half)]


@pytest.mark.parametrize("cells", TABLE, ids=lambda cells: " ".join(cells[:2]))
def test_a_line_of_the_table_is_that_of_its_questions(cells: list[str]) -> None:
    data_set, questions = SETS[cells[0]]
    system = cells[1].split()[1] if cells[1].startswith("naive") else "judge"
    is_without_verdicts = cells[1] == "the same, without the verdicts"
    evidence = column(data_set, system, "found" if is_without_verdicts else "evidence")

    assert len(evidence) == questions
    assert cells[2] == f"{100 * evidence.mean():.1f} %"
    assert is_without_verdicts or cells[4] == f"{column(data_set, system, 'tokens').mean():,.0f}"
    if system == least_passages(data_set):
        differences = column(data_set, "judge", "evidence") - evidence
        told = [float(each) for each in re.findall(r"[-+]\d+\.\d", cells[5])]
        assert told == pytest.approx([100 * differences.mean(), *bonett_price(differences)], abs=0.051)
        assert cells[6] == "< .001" and exact_p(differences) < 0.001
    else:
        assert not cells[5]


def test_the_first_sentence_is_that_of_all_questions() -> None:
    pairs = [
        (column(name, "judge", "evidence"), column(name, least_passages(name), "evidence")) for name, _ in SETS.values()
    ]
    judge, naive = (np.concatenate(each) for each in zip(*pairs, strict=True))
    differences = judge - naive
    told = [float(each) for each in re.findall(r"(\d+\.\d)", re.search(r"\*\*Beside three(.*?)\*\*", PAGE)[1])]

    expected = [100 * judge.mean(), 100 * naive.mean(), 100 * differences.mean(), *bonett_price(differences)]
    assert told[:5] == pytest.approx(expected, abs=0.051)
    assert exact_p(differences) < 0.001
    assert f"of {len(judge)} questions" in PAGE


@pytest.mark.parametrize("cells", KINDS, ids=lambda cells: " ".join(cells[:2]))
def test_a_kind_of_question_is_counted(cells: list[str]) -> None:
    data_set = SETS[cells[0]][0]
    mine = [row for row in ROWS if row["set"] == data_set and row["type"].replace("_", " ") == cells[1]]
    judge, naive = (
        {row["id"]: int(row["evidence"]) for row in mine if row["system"] == system}
        for system in ("judge", least_passages(data_set))
    )
    alone = [sum(one[each] > other[each] for each in judge) for one, other in ((judge, naive), (naive, judge))]

    assert cells[2:] == [
        str(len(judge)),
        str(sum(judge.values())),
        str(sum(naive.values())),
        f"{alone[0]} : {alone[1]}",
    ]


def test_what_the_judge_takes_away_is_told() -> None:
    found = [float(row["found"]) for row in ROWS if row["system"] == "judge"]

    assert f"without its verdicts it would be {100 * np.mean(found):.1f} %" in PAGE
    lost = sum(row["system"] == "judge" and row["found"] > row["evidence"] for row in ROWS)
    assert lost == 7 and "needed ones in seven questions" in PAGE
