"""When order matters: what the experiment computes, and that its page says what its tables say."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from benchmarks.order import Rating, averaged, calibration


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
