"""The table of the experiment on equal budgets, computed again from what each question took, without our statistics."""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
PAGE = (FOLDER / "fair.md").read_text(encoding="utf-8")
with (FOLDER / "fair.csv").open(encoding="utf-8") as file:
    QUESTIONS = list(csv.DictReader(file))
SYSTEMS = ("naive", "naive_matched", "ircot_matched", "judge")
LINES = [line for line in PAGE.splitlines() if line.startswith(("| HotpotQA 500 |", "| MuSiQue 100 |"))]
TABLE = [[cell.strip() for cell in line.strip("| ").split("|")] for line in LINES]
PLACES = [(name, judge) for name in ("hotpotqa", "musique") for judge in ("per chunk", "batched")]


def rows_of(name: str, judge: str) -> list[dict[str, str]]:
    return [row for row in QUESTIONS if (row["set"], row["judge"]) == (name, judge)]


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def shown(name: str, judge: str) -> dict[str, list[str]]:
    """The cells of the page behind data set and judge, by system."""
    title = {"hotpotqa": "HotpotQA 500", "musique": "MuSiQue 100"}[name]
    found = [row for row in TABLE if row[:2] == [title, judge]]
    return dict(zip(SYSTEMS, [row[2:] for row in found], strict=True))


def clusters(rows: list[dict[str, str]]) -> list[int]:
    """Number the groups of questions that share a single-hop question of their ids, by merging sets."""
    groups: list[tuple[set[str], list[int]]] = []
    for place, row in enumerate(rows):
        parts = set(row["question"].partition("__")[2].split("_")) or {row["question"]}
        joined = [each for each in groups if each[0] & parts]
        for each in joined:
            groups.remove(each)
            parts |= each[0]
        groups.append((parts, [place, *(at for each in joined for at in each[1])]))
    number = {place: at for at, (_, places) in enumerate(groups) for place in places}
    return [number[place] for place in range(len(rows))]


def sums(differences: np.ndarray, rows: list[dict[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    total, size = defaultdict(float), defaultdict(int)
    for value, cluster in zip(differences, clusters(rows), strict=True):
        total[cluster] += value
        size[cluster] += 1
    return np.array([total[each] for each in total]), np.array([size[each] for each in total])


def p_value(differences: np.ndarray, rows: list[dict[str, str]], name: str) -> float:
    if name == "hotpotqa":  # exact binomial test of the questions on which one alone is right
        won, lost = int((differences > 0).sum()), int((differences < 0).sum())
        tail = sum(math.comb(won + lost, each) for each in range(min(won, lost) + 1)) / 2 ** (won + lost)
        return min(1.0, 2 * tail)
    totals, _ = sums(differences, rows)
    signs = np.random.default_rng(11).choice((-1, 1), size=(40_000, len(totals)))
    return float(((np.abs(signs @ totals) >= abs(totals.sum()) - 1e-9).sum() + 1) / 40_001)


def interval(differences: np.ndarray, rows: list[dict[str, str]], name: str) -> tuple[float, float]:
    n = len(differences)
    if name == "hotpotqa":  # Bonett and Price 2012
        one, other = (((differences == sign).sum() + 1) / (n + 2) for sign in (1, -1))
        half = 1.959964 * math.sqrt((one + other - (one - other) ** 2) / (n + 2))
        return one - other - half, one - other + half
    totals, sizes = sums(differences, rows)
    drawn = np.random.default_rng(12).integers(0, len(totals), size=(40_000, len(totals)))
    means = totals[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def holm(values: dict[str, float]) -> dict[str, float]:
    found, raised = {}, 0.0
    for place, system in enumerate(sorted(values, key=values.__getitem__)):
        raised = max(raised, values[system] * (len(values) - place))
        found[system] = min(raised, 1.0)
    return found


@pytest.mark.parametrize(("name", "judge"), PLACES)
def test_means_are_those_of_the_questions(name: str, judge: str) -> None:
    rows, cells = rows_of(name, judge), shown(name, judge)
    assert len(rows) == len({row["question"] for row in rows}) == (500 if name == "hotpotqa" else 100)
    for system in SYSTEMS:
        evidence, calls, tokens = (column(rows, f"{system}_{what}").mean() for what in ("evidence", "calls", "tokens"))
        assert cells[system][1:4] == [f"{100 * evidence:.1f} %", f"{calls:.2f}", f"{tokens:,.0f}"]


@pytest.mark.parametrize(("name", "judge"), PLACES)
def test_differences_intervals_and_p_values_are_computed_again(name: str, judge: str) -> None:
    rows, cells = rows_of(name, judge), shown(name, judge)
    own = column(rows, "judge_evidence")
    differences = {system: own - column(rows, f"{system}_evidence") for system in SYSTEMS[:3]}
    p_values = holm({system: p_value(each, rows, name) for system, each in differences.items()})
    for system, each in differences.items():
        told = [float(number) for number in re.findall(r"[-+]\d+\.\d", cells[system][4])]
        low, high = interval(each, rows, name)
        near = 0.06 if name == "hotpotqa" else 1.1
        assert told[0] == pytest.approx(100 * each.mean(), abs=0.051)
        assert told[1:] == pytest.approx([100 * low, 100 * high], abs=near)
        if cells[system][5] == "< .001":
            assert p_values[system] < 0.001
        else:
            assert float(cells[system][5]) == pytest.approx(p_values[system], abs=0.004)


def test_matched_opponents_have_the_tokens_and_no_more_calls() -> None:
    for name, judge in PLACES:
        rows = rows_of(name, judge)
        spent, budget = (column(rows, f"{each}_tokens").mean() for each in ("naive_matched", "judge"))
        assert spent == pytest.approx(budget, rel=0.15)
        assert column(rows, "ircot_matched_calls").mean() < column(rows, "judge_calls").mean()
    assert all(a["question"] != b["question"] for a, b in combinations(rows_of("musique", "batched"), 2))
