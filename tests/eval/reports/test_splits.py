"""Means by kind of question: the same questions for every system, and no split where there is nothing to tell apart."""

from __future__ import annotations

import pandas as pd
import pytest

from judgetree.evaluation.reports.means import FIRED, QUIET, recursion_fired, split_frame


def frame(**changes: list[object]) -> pd.DataFrame:
    """Two systems on three questions; the judge asked a sub-question for the second alone."""
    columns: dict[str, list[object]] = {
        "system": ["naive", "judge"] * 3,
        "question_id": ["1", "1", "2", "2", "3", "3"],
        "type": ["bridge", "bridge", "bridge", "bridge", "comparison", "comparison"],
        "hops": [2, 2, 3, 3, None, None],
        "sub_runs": [0, 0, 0, 2, 0, None],
        "em": [1.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    }
    return pd.DataFrame({**columns, **changes})


def means(splits: pd.DataFrame, split: str) -> dict[tuple[str, str], float]:
    rows = splits[splits["split"] == split]
    return {(row.part, row.system): row.mean for row in rows.itertuples()}


def test_recursion_is_asked_of_the_question_and_not_of_the_row() -> None:
    assert list(recursion_fired(frame())) == [QUIET, QUIET, FIRED, FIRED, QUIET, QUIET]


def test_judges_with_options_of_their_own_are_judges() -> None:
    named = frame()
    named["system"] = named["system"].replace("judge", "judge(judge=batched)")
    assert list(recursion_fired(named)) == list(recursion_fired(frame()))


def test_recursion_fired_if_it_did_in_any_repeat() -> None:
    twice = pd.concat([frame(), frame(sub_runs=[0, 1, 0, 0, 0, 0])])
    assert list(recursion_fired(twice))[:6] == [FIRED, FIRED, FIRED, FIRED, QUIET, QUIET]


def test_without_a_judge_nothing_is_known_of_recursion() -> None:
    alone = frame()
    alone = alone[alone["system"] == "naive"]
    assert recursion_fired(alone) is None
    assert "recursion" not in set(split_frame(alone, ["em"])["split"])


def test_every_part_has_its_mean_for_each_system() -> None:
    splits = split_frame(frame(), ["em"])
    assert means(splits, "type") == {
        ("bridge", "naive"): 0.5,
        ("bridge", "judge"): 0.5,
        ("comparison", "naive"): 1.0,
        ("comparison", "judge"): 1.0,
    }
    assert means(splits, "hops") == {("2", "naive"): 1.0, ("2", "judge"): 0.0, ("3", "naive"): 0.0, ("3", "judge"): 1.0}
    assert means(splits, "recursion")[FIRED, "judge"] == 1.0
    assert means(splits, "recursion")[QUIET, "naive"] == 1.0
    by_place = splits.set_index(["split", "part", "system"])
    assert by_place.loc[("recursion", QUIET, "naive"), "n"] == 2


def test_parts_of_a_split_add_up_to_the_questions_that_have_one() -> None:
    splits = split_frame(frame(), ["em"])
    sums = splits.groupby(["split", "system"])["n"].sum()
    assert sums["type", "judge"] == sums["recursion", "judge"] == 3
    assert sums["hops", "judge"] == 2


def test_repeats_of_a_question_are_its_mean() -> None:
    splits = split_frame(pd.concat([frame(), frame(em=[0.0] * 6)]), ["em"])
    assert means(splits, "type")["comparison", "judge"] == 0.5
    assert splits["n"].max() == 2


@pytest.mark.parametrize("kinds", [["bridge"] * 6, [""] * 6, ["bridge", "bridge", "", "", "", ""]])
def test_split_into_one_part_is_none(kinds: list[object]) -> None:
    assert "type" not in set(split_frame(frame(type=kinds), ["em"])["split"])


def test_metric_that_a_part_lacks_is_left_out() -> None:
    splits = split_frame(frame(em=[1.0, 0.0, 0.0, 1.0, None, None]), ["em"])
    assert set(splits[splits["split"] == "type"]["part"]) == {"bridge"}


def test_frame_without_splits_has_its_columns() -> None:
    splits = split_frame(frame(type=[""] * 6, hops=[None] * 6, sub_runs=[0] * 6), ["em"])
    assert splits.empty
    assert list(splits.columns) == ["split", "part", "system", "metric", "mean", "low", "high", "n"]
