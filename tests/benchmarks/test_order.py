"""When order matters: what the experiment computes, and that its page says what its tables say."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.order import Rating, averaged, calibration
from benchmarks.order_tables import TABLES, at, number, plain, probability_table


def played(complete: dict[str, list[list[int]]]) -> pd.DataFrame:
    """Rows of replays: ``complete[policy][seed]`` has the outcome of each question."""
    return pd.DataFrame(
        {"question": f"q{at}", "policy": policy, "budget": 8, "complete": bool(each), "recall": each, "calls": 2 * each}
        for policy, seeds in complete.items()
        for outcomes in seeds
        for at, each in enumerate(outcomes)
    )


def test_questions_are_averaged_over_seeds_before_they_are_compared() -> None:
    ours, theirs = [[1] * 8, [0] * 8], [[0] * 8, [0] * 8]
    table = averaged(played({"breadth": theirs, "wider": ours, "mcts": theirs})).set_index("policy")
    assert table["complete"].to_dict() == {"breadth": 0, "wider": 0.5, "mcts": 0}
    assert (table.loc["wider", "low"], table.loc["wider", "high"]) == (0.5, 0.5), "no question differs from another"
    assert table.loc["wider", "gain"] == 0.5
    assert table.loc["wider", "calls"] == 1
    assert table.loc["wider", "p"] == pytest.approx(2 * 2 / 2**8), "8 questions, not 16 outcomes; two comparisons"
    assert math.isnan(table.loc["breadth", "p"])


def test_probabilities_stand_beside_what_the_query_and_the_question_need() -> None:
    rated = [Rating("question", 0.5, True, True), Rating("sub-question", 0.2, True, False)]
    rated.append(Rating("sub-question", 0.4, False, False))
    table = calibration(rated).set_index("asked_by")
    assert table.loc["sub-question", "p_needed"] == pytest.approx(0.3)
    assert table.loc["sub-question", ["needed", "gold", "chunks"]].tolist() == [0.5, 0, 2]


# --- the page ---

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
FOUND, RATED = (pd.read_csv(FOLDER / f"{name}.csv") for name in ("order", "order-calibration"))
PAGE = (FOLDER / "order.md").read_text(encoding="utf-8")
PLAIN = plain(FOUND)


def spread(dataset: str, judging: str, budget: int, policy: str, column: str = "gain") -> pd.Series[float]:
    here = PLAIN[(PLAIN["dataset"] == dataset) & (PLAIN["judging"] == judging) & (PLAIN["budget"] == budget)]
    return here[here["policy"] == policy].set_index(["auc", "writer"])[column]


def value(policy: str, column: str = "complete", **cell: object) -> float:
    return float(at(FOUND, **cell).loc[policy, column])


def test_the_tables_of_the_page_are_those_of_its_results() -> None:
    for make in TABLES.values():
        assert make(FOUND) in PAGE
    assert probability_table(RATED) in PAGE


def test_numbers_in_the_words_of_the_page_are_those_of_its_results() -> None:
    hotpotqa, musique = ({"dataset": name, "judging": "per chunk"} for name in ("hotpotqa", "musique"))
    poor = {"auc": 1.0, "writer": 0.5, "budget": 60, "sees_wrong": True}
    good = {"auc": 0.8, "writer": 1.0}
    best = [value("best_first", name, **musique, **good, budget=32) for name in ("gain", "gain_low", "gain_high")]
    lost = PLAIN.groupby(["dataset", "policy"])["gain"].min().abs()
    ordered = [spread(name, "per chunk", 16, "oracle_order").mean() for name in ("hotpotqa", "musique")]
    again = [spread(name, "per chunk", 60, "mcts").max() for name in ("hotpotqa", "musique")]
    seeing = [value("mcts", "gain", **where, **poor) for where in (hotpotqa, musique)]
    calls = {each: spread("musique", "batched", 60, each, "calls") for each in ("mcts", "breadth", "value_cost")}
    saved = (1 - calls["value_cost"] / calls["breadth"]).max()
    words = " ".join(PAGE.split())
    for claim in (
        f"All {len(FOUND):,} rows",
        "gains {} evidence complete over plain breadth on HotpotQA and {} on MuSiQue".format(*map(number, ordered)),
        f"and at most {number(PLAIN[PLAIN['policy'] == 'oracle_order']['gain'].max())}",
        f"gains {number(spread('musique', 'per chunk', 32, 'best_first').mean())} on average and up to",
        "AUC .8, perfect writer: {}, {} to {}".format(*map(number, best)),
        f"A random order loses up to {number(lost.xs('random', level='policy').max())}",
        "with 60 calls at most {} on HotpotQA and {} on MuSiQue".format(*map(number, again)),
        "it gains {} and {} where half of them are wrong".format(*map(number, seeing)),
        f"by a noisy judge (up to {number(spread('musique', 'batched', 60, 'mcts').max())}, at more calls)",
        f"{calls['mcts'][0.8, 1.0]:.1f} calls a question against {calls['breadth'][0.8, 1.0]:.1f}",
        f"up to {100 * saved:.0f} % under a poor one",
        "up to {} on HotpotQA and {} on MuSiQue".format(*map(number, lost.xs("value_cost", level="policy"))),
    ):
        assert claim in words, claim
