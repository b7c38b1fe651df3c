"""Comparisons of two systems: cases worked out by hand, and laws over generated scores."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from judgetree.evaluation.metrics.statistics import (
    adjust_comparisons,
    compare_paired,
    holm,
    mcnemar_p_value,
    noise_floor,
    sign_flip_p_value,
    smallest_detectable_difference,
)

FEW = 200  # resamples that are enough for a law

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=12)
outcomes = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=30)


def split(scores: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in scores], [b for _, b in scores]


# --- missing and unfitting values ---


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_a_missing_value_is_refused_by_its_place(missing: float | None) -> None:
    with pytest.raises(ValueError, match=r"scores of B .* index 0"):
        compare_paired([0.5, 1.0], [missing, 1.0], metric="F1", test="permutation")


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([], [], "There are no scores of A"),
        ([1.0, 0.0], [1.0], "A has 2 and B has 1"),
        ([1.0, 0.5], [1.0, 0.0], "needs scores of 0 and 1"),
    ],
)
def test_scores_that_cannot_be_compared_are_refused(a: list[float], b: list[float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        compare_paired(a, b, metric="EM", test="mcnemar")


# --- McNemar ---


@pytest.mark.parametrize(
    ("a_alone", "b_alone", "expected"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 2**5),
        (1, 5, 2 * (1 + 6) / 2**6),
        (2, 6, 2 * (1 + 8 + 28) / 2**8),
        (4, 4, 1.0),
    ],
)
def test_mcnemar_is_a_fair_coin_over_discordant_questions(a_alone: int, b_alone: int, expected: float) -> None:
    differences = np.array([0.0] * 3 + [1.0] * a_alone + [-1.0] * b_alone)
    assert mcnemar_p_value(differences) == pytest.approx(expected)


@given(outcomes)
def test_mcnemar_does_not_mind_which_system_comes_first(scores: list[tuple[float, float]]) -> None:
    differences = np.subtract(*split(scores))
    assert mcnemar_p_value(differences) == pytest.approx(mcnemar_p_value(-differences))
    assert 0 <= mcnemar_p_value(differences) <= 1


# --- permutation test ---


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([0.0, 0.0], 1.0),
        ([0.5, 0.0], 1.0),
        ([0.5, 0.75, 1.0], 2 / 8),
        ([0.5, 0.75, 1.0] + [0.0] * 500, 2 / 8),
        # of 16 sign patterns of 1, 2, 3, 4 quarters, -1+2+3+4 = 8 or more has two
        ([-0.25, 0.5, 0.75, 1.0], 4 / 16),
    ],
)
def test_few_differences_are_tested_exactly(differences: list[float], expected: float) -> None:
    assert sign_flip_p_value(np.array(differences)) == pytest.approx(expected)


def test_many_differences_are_tested_at_random_but_always_alike() -> None:
    a, b = np.random.default_rng(3).random((2, 200))
    assert sign_flip_p_value(a - b) == sign_flip_p_value(a - b)
    assert sign_flip_p_value(1.0 - b) == pytest.approx(2 / 10_001)


@given(outcomes.filter(lambda scores: 2 <= sum(a != b for a, b in scores) <= 12))
def test_both_tests_agree_on_zeros_and_ones(scores: list[tuple[float, float]]) -> None:
    differences = np.subtract(*split(scores))
    assert sign_flip_p_value(differences) == pytest.approx(mcnemar_p_value(differences))


# --- comparisons ---


@settings(max_examples=30)
@given(pairs)
def test_exchanging_the_systems_flips_the_sign_and_nothing_else(scores: list[tuple[float, float]]) -> None:
    a, b = split(scores)
    there = compare_paired(a, b, metric="F1", test="permutation", resamples=FEW)
    back = compare_paired(b, a, metric="F1", test="permutation", resamples=FEW)
    assert back.difference.mean == pytest.approx(-there.difference.mean)
    assert (back.a_better, back.b_better) == (there.b_better, there.a_better)
    assert back.p_value == pytest.approx(there.p_value)
    assert back.smallest_detectable == pytest.approx(there.smallest_detectable)
    if there.difference.low is None:
        assert len({one - other for one, other in zip(a, b, strict=True)}) == 1
    else:  # percentiles of as many resamples, taken from the other end
        assert back.difference.high == pytest.approx(-there.difference.low)


@settings(max_examples=30)
@given(pairs, st.randoms(use_true_random=False))
def test_the_order_of_questions_does_not_matter(scores: list[tuple[float, float]], random: Random) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)
    one, other = (
        compare_paired(*split(order), metric="F1", test="permutation", resamples=5000) for order in (scores, shuffled)
    )
    assert one.difference.mean == pytest.approx(other.difference.mean)
    assert one.p_value == pytest.approx(other.p_value)
    assert (one.a_better, one.b_better) == (other.a_better, other.b_better)


def test_the_paired_interval_of_agreeing_systems_is_narrower() -> None:
    b = ([1.0, 0.0] * 100)[:200]
    a = [1.0] * 12 + b[12:]
    comparison = compare_paired(a, b, metric="EM", test="mcnemar")
    assert comparison.difference.mean == pytest.approx(0.03)
    assert (comparison.a_better, comparison.b_better) == (6, 0)
    assert comparison.p_value == pytest.approx(2 / 2**6)
    low, high = comparison.difference.low, comparison.difference.high
    assert low is not None
    assert high is not None
    assert high - low < 0.06  # about 0.2 if the questions were not paired


def test_the_interval_of_a_clean_sweep_is_no_point() -> None:
    sweep = compare_paired([1.0] * 8, [0.0] * 8, metric="EM", test="mcnemar").difference
    # Bonett and Price: (9 - 1) / 10 +- 1.96 sqrt((1.0 - 0.64) / 10), and no further than the difference itself.
    assert (sweep.mean, sweep.high) == (1.0, 1.0)
    assert sweep.low == pytest.approx(0.8 - 1.96 * math.sqrt(0.036), abs=1e-3)


def test_dialogues_are_exchanged_and_drawn_as_a_whole() -> None:
    a, b = [1.0] * 12, [0.0] * 12
    dialogues = [f"d{number // 4}" for number in range(12)]
    by_turn = compare_paired(a, b, metric="EM", test="permutation")
    by_dialogue = compare_paired(a, b, metric="EM", test="permutation", groups=dialogues)
    assert by_turn.p_value == pytest.approx(2 / 2**12)
    assert by_dialogue.p_value == by_dialogue.least_p_value == pytest.approx(2 / 2**3)
    assert (by_dialogue.groups, by_dialogue.difference.n) == (3, 12)
    with pytest.raises(ValueError, match="questions that stand alone"):
        compare_paired(a, b, metric="EM", test="mcnemar", groups=dialogues)


def test_correlated_turns_widen_the_interval() -> None:
    rng = np.random.default_rng(2)
    a = np.repeat(rng.random(20), 5).tolist()
    dialogues = [f"d{number // 5}" for number in range(100)]
    alone = compare_paired(a, [0.5] * 100, metric="F1", test="permutation")
    together = compare_paired(a, [0.5] * 100, metric="F1", test="permutation", groups=dialogues)
    assert None not in (alone.difference.low, alone.difference.high, together.difference.low, together.difference.high)
    widths = [each.difference.high - each.difference.low for each in (alone, together)]  # type: ignore[operator]
    assert widths[1] > 1.8 * widths[0], "five times the variance, so more than twice as wide"
    assert together.smallest_detectable == pytest.approx((alone.smallest_detectable or 0) * math.sqrt(5), rel=0.1)


def test_a_p_value_is_never_below_what_the_test_can_give() -> None:
    b = np.random.default_rng(3).random(200).tolist()
    found = compare_paired([1.0] * 200, b, metric="F1", test="permutation", resamples=999)
    assert (found.p_value, found.resamples) == (pytest.approx(2 / 1000), 999)
    assert found.p_value >= found.least_p_value > 0


def test_a_comparison_over_one_question_says_nothing() -> None:
    comparison = compare_paired([1.0], [0.0], metric="EM", test="mcnemar")
    assert (comparison.p_value, comparison.difference.low, comparison.smallest_detectable) == (1.0, None, None)
    assert not comparison.is_shown


# --- smallest detectable difference ---


def test_the_detectable_difference_of_many_questions_is_the_textbook_one() -> None:
    differences = np.array([1.0, -1.0, 0.0, 0.0] * 100)
    deviation = math.sqrt(200 / 399)
    assert smallest_detectable_difference(differences) == pytest.approx((1.95996 + 0.84162) * deviation / 20, rel=0.01)


@pytest.mark.parametrize("n", [2, 3, 73, 120, 1007])
def test_a_t_test_finds_the_detectable_difference_four_times_out_of_five(n: int) -> None:
    a = np.random.default_rng(n).normal(size=n)
    difference = smallest_detectable_difference(a)
    assert difference is not None
    # Power from its definition: the non-central t distribution beyond the two critical values.
    critical = stats.t.ppf(0.975, n - 1)
    beyond = stats.nct(n - 1, math.sqrt(n) * difference / a.std(ddof=1))
    assert beyond.sf(critical) + beyond.cdf(-critical) == pytest.approx(0.8, abs=0.001)


def test_a_difference_that_never_varies_cannot_be_sized() -> None:
    assert smallest_detectable_difference(np.array([0.2, 0.2, 0.2])) is None
    assert smallest_detectable_difference(np.array([1.0])) is None


# --- Holm ---


def test_holm_multiplies_the_smallest_by_all_and_the_next_by_one_less() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    compared = compare_paired([1.0], [0.0], metric="EM", test="mcnemar")
    adjusted = adjust_comparisons([replace(compared, p_value=p) for p in (0.01, 0.04, 0.03)])
    assert [each.adjusted_p_value for each in adjusted] == pytest.approx([0.03, 0.06, 0.06])
    assert {each.comparisons for each in adjusted} == {3}
    assert adjust_comparisons([]) == ()


def test_holm_is_that_of_statsmodels() -> None:
    ties = np.random.default_rng(3).choice([0.0, 0.004, 0.02, 0.3, 1.0], size=40)
    for p_values in (ties, ties**2, ties[:1]):
        assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))


# --- noise ---


def test_the_noise_floor_is_the_deviation_of_the_run_means() -> None:
    floor = noise_floor(np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]))
    assert floor.means == (0.5, 0.75, 1.0)
    assert floor.sd_of_means == pytest.approx(0.25)
    assert floor.flipped_share == 0.5
    assert floor.n == 4


@pytest.mark.parametrize(("second_run", "flipped"), [([1.0, 0.0], 0.0), ([0.0, 1.0], 1.0)])
def test_outcomes_may_flip_where_means_do_not(second_run: list[float], flipped: float) -> None:
    floor = noise_floor(np.array([[1.0, 0.0], second_run]))
    assert (floor.sd_of_means, floor.flipped_share) == (0.0, flipped)
