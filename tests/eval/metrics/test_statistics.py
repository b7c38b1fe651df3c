"""Statistics of scores: cases worked out by hand, laws over generated scores, and coverage on a simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from judgetree.evaluation.metrics.statistics import (
    MeanInterval,
    PairedComparison,
    adjust_comparisons,
    adjust_holm,
    align_scores,
    compare_paired,
    mcnemar_p_value,
    mean_interval,
    noise_floor,
    sign_flip_p_value,
    smallest_detectable_difference,
    verdict_in_words,
)

FEW = 200  # resamples that are enough for a law

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=12)
outcomes = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=30)


def split(scores: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in scores], [b for _, b in scores]


# --- intervals ---


def test_the_interval_of_zeros_and_ones_is_close_to_the_normal_one() -> None:
    interval = mean_interval([1.0] * 100 + [0.0] * 100)
    assert interval.mean == 0.5
    assert interval.n == 200
    half_width = 1.96 * math.sqrt(0.25 / 200)
    assert interval.low == pytest.approx(0.5 - half_width, abs=0.01)
    assert interval.high == pytest.approx(0.5 + half_width, abs=0.01)


def test_the_interval_of_the_same_values_is_a_point() -> None:
    assert mean_interval([0.25] * 5) == MeanInterval(mean=0.25, low=0.25, high=0.25, n=5)


def test_one_value_has_no_interval() -> None:
    assert mean_interval([1.0]) == MeanInterval(mean=1.0, low=None, high=None, n=1)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    values = np.random.default_rng(5).random(40).tolist()
    assert mean_interval(values, seed=1) == mean_interval(values, seed=1)
    assert mean_interval(values, seed=1) != mean_interval(values, seed=2)


@settings(max_examples=30)
@example([5.5157177261734015e-251] * 2)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_an_interval_lies_within_the_values_and_around_the_mean(values: list[float]) -> None:
    interval = mean_interval(values, resamples=FEW)
    assert interval.low is not None
    assert interval.high is not None
    assert min(values) - 1e-9 <= interval.low <= interval.high <= max(values) + 1e-9
    assert min(values) - 1e-9 <= interval.mean <= max(values) + 1e-9


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(200):
        interval = mean_interval((rng.random(60) < 0.4).astype(float).tolist(), resamples=400)
        covered += interval.low is not None and interval.high is not None and interval.low <= 0.4 <= interval.high
    # Binomial(200, .95) lies in here with more than 99.9 %; an interval of 80 % would not reach it.
    assert 178 <= covered <= 199


# --- missing and unfitting values ---


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_a_missing_value_is_refused_by_its_place(missing: float | None) -> None:
    with pytest.raises(ValueError, match=rf"values must be finite numbers, but that at index 1 is {missing}"):
        mean_interval([0.5, missing])
    with pytest.raises(ValueError, match=r"scores of B .* index 0"):
        compare_paired([0.5, 1.0], [missing, 1.0], metric="F1", test="permutation")
    with pytest.raises(ValueError, match=r"scores of run 2 .* index 1"):
        noise_floor([[1.0, 0.0], [1.0, missing]])


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="There are no values"):
        mean_interval([])
    with pytest.raises(ValueError, match="There are no scores of A"):
        mcnemar_p_value([], [])


def test_pairs_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="A has 2 and B has 1"):
        sign_flip_p_value([1.0, 0.0], [1.0])


def test_mcnemar_refuses_graded_scores() -> None:
    with pytest.raises(ValueError, match="takes scores of 0 and 1"):
        mcnemar_p_value([1.0, 0.5], [1.0, 0.0])


def test_scores_are_aligned_by_question() -> None:
    assert align_scores({"q1": 1.0, "q2": 0.0}, {"q2": 0.5, "q1": 0.25}) == ([1.0, 0.0], [0.25, 0.5])


def test_scores_of_different_questions_are_refused() -> None:
    odd = {f"q{number}": 1.0 for number in range(5)}
    with pytest.raises(ValueError, match=r"5 have a score from one of them only \(q0, q1, q2, …\)"):
        align_scores({"same": 1.0, **odd}, {"same": 1.0})


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
def test_mcnemar_is_a_fair_coin_over_the_questions_that_one_alone_has_right(
    a_alone: int, b_alone: int, expected: float
) -> None:
    a = [1.0, 0.0, 0.0] + [1.0] * a_alone + [0.0] * b_alone
    b = [1.0, 0.0, 0.0] + [0.0] * a_alone + [1.0] * b_alone
    assert mcnemar_p_value(a, b) == pytest.approx(expected)


@given(outcomes)
def test_mcnemar_does_not_mind_which_system_comes_first(scores: list[tuple[float, float]]) -> None:
    a, b = split(scores)
    assert mcnemar_p_value(a, b) == pytest.approx(mcnemar_p_value(b, a))
    assert 0 <= mcnemar_p_value(a, b) <= 1


# --- permutation test ---


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0.5, 0.5], [0.5, 0.5], 1.0),
        ([1.0, 0.5], [0.5, 0.5], 1.0),
        ([0.5, 0.75, 1.0], [0.0, 0.0, 0.0], 2 / 8),
        # of 16 sign patterns of 1, 2, 3, 4 quarters, -1+2+3+4 = 8 or more has two
        ([0.0, 0.5, 0.75, 1.0], [0.25, 0.0, 0.0, 0.0], 4 / 16),
    ],
)
def test_few_differences_are_tested_exactly(a: list[float], b: list[float], expected: float) -> None:
    assert sign_flip_p_value(a, b) == pytest.approx(expected)


def test_questions_without_a_difference_do_not_change_the_test() -> None:
    assert sign_flip_p_value([0.5, 0.75, 1.0] + [0.3] * 500, [0.0, 0.0, 0.0] + [0.3] * 500) == pytest.approx(2 / 8)


def test_many_differences_are_tested_at_random_but_with_a_seed() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random(200).tolist(), rng.random(200).tolist()
    assert sign_flip_p_value(a, b, seed=4) == sign_flip_p_value(a, b, seed=4)
    assert sign_flip_p_value([1.0] * 200, b) == pytest.approx(2 / 10_001)


@given(outcomes.filter(lambda scores: 2 <= sum(a != b for a, b in scores) <= 12))
def test_both_tests_agree_on_zeros_and_ones(scores: list[tuple[float, float]]) -> None:
    a, b = split(scores)
    assert sign_flip_p_value(a, b) == pytest.approx(mcnemar_p_value(a, b))


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
    assert there.difference.low is not None
    # Percentiles of as many resamples, taken from the other end.
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


def test_the_paired_interval_is_narrower_than_the_systems_own_when_they_agree_on_most_questions() -> None:
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


def test_a_comparison_over_one_question_says_nothing() -> None:
    comparison = compare_paired([1.0], [0.0], metric="EM", test="mcnemar")
    assert (comparison.p_value, comparison.difference.low, comparison.smallest_detectable) == (1.0, None, None)
    assert not comparison.is_shown


# --- smallest detectable difference ---


def test_the_detectable_difference_of_many_questions_is_the_textbook_one() -> None:
    a = [1.0, 0.0, 0.5, 0.5] * 100
    b = [0.0, 1.0, 0.5, 0.5] * 100
    deviation = math.sqrt(200 / 399)
    assert smallest_detectable_difference(a, b) == pytest.approx((1.95996 + 0.84162) * deviation / 20, rel=0.01)


@pytest.mark.parametrize("n", [2, 3, 73, 120, 1007])
def test_a_t_test_finds_the_detectable_difference_four_times_out_of_five(n: int) -> None:
    a = np.random.default_rng(n).normal(size=n)
    difference = smallest_detectable_difference(a.tolist(), [0.0] * n)
    assert difference is not None
    # Power from its definition: the non-central t distribution beyond the two critical values.
    critical = stats.t.ppf(0.975, n - 1)
    beyond = stats.nct(n - 1, math.sqrt(n) * difference / a.std(ddof=1))
    assert beyond.sf(critical) + beyond.cdf(-critical) == pytest.approx(0.8, abs=0.001)


def test_a_difference_that_never_varies_cannot_be_sized() -> None:
    assert smallest_detectable_difference([0.3, 0.3, 0.3], [0.1, 0.1, 0.1]) is None
    assert smallest_detectable_difference([1.0], [0.0]) is None


# --- Holm ---


def test_holm_multiplies_the_smallest_by_all_and_the_next_by_one_less() -> None:
    assert adjust_holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert adjust_holm([0.02]) == pytest.approx((0.02,))
    assert adjust_holm([]) == ()


@settings(max_examples=20)  # statsmodels collects garbage at every call: a tenth of a second
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = adjust_holm(p_values)
    assert all(raw - 1e-12 <= new <= 1 for raw, new in zip(p_values, adjusted, strict=True))
    ranked = [new for _, new in sorted(zip(p_values, adjusted, strict=True))]
    assert ranked == sorted(ranked)


@pytest.mark.parametrize("p_value", [-0.1, 1.1, math.nan])
def test_holm_refuses_what_is_no_probability(p_value: float) -> None:
    with pytest.raises(ValueError, match="p value"):
        adjust_holm([0.5, p_value])


# --- noise ---


def test_the_noise_floor_is_the_deviation_of_the_run_means() -> None:
    floor = noise_floor([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    assert floor.means == (0.5, 0.75, 1.0)
    assert floor.sd_of_means == pytest.approx(0.25)
    assert floor.flipped_share == 0.5
    assert floor.n == 4


def test_runs_that_agree_have_no_noise() -> None:
    floor = noise_floor([[1.0, 0.0]] * 3)
    assert (floor.sd_of_means, floor.flipped_share) == (0.0, 0.0)


def test_outcomes_may_flip_where_means_do_not() -> None:
    floor = noise_floor([[1.0, 0.0], [0.0, 1.0]])
    assert (floor.sd_of_means, floor.flipped_share) == (0.0, 1.0)


@pytest.mark.parametrize(("runs", "reason"), [([[1.0]], "at least 2 runs"), ([[1.0], [1.0, 0.0]], r"have \[1, 2\]")])
def test_runs_that_cannot_be_set_side_by_side_are_refused(runs: list[list[float]], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        noise_floor(runs)


# --- words ---

SHOWN = PairedComparison(
    metric="EM",
    mean_a=0.532,
    mean_b=0.5,
    difference=MeanInterval(mean=0.032, low=0.004, high=0.06, n=500),
    a_better=38,
    b_better=22,
    test="mcnemar",
    p_value=0.021,
    smallest_detectable=0.04,
)


def test_a_difference_that_was_shown_is_said_with_its_evidence() -> None:
    assert verdict_in_words(SHOWN, a="judge", b="naive") == (
        "judge is better than naive by 3.2 points of EM "
        "(95 % interval 0.4 to 6.0; exact McNemar test, p = 0.021; 500 questions)."
    )


def test_the_better_system_is_named_first() -> None:
    worse = replace(SHOWN, difference=MeanInterval(mean=-0.032, low=-0.06, high=-0.004, n=500), p_value=0.0001)
    assert verdict_in_words(worse, a="judge", b="naive") == (
        "naive is better than judge by 3.2 points of EM "
        "(95 % interval 0.4 to 6.0; exact McNemar test, p < 0.001; 500 questions)."
    )


def test_a_correction_can_take_a_difference_back() -> None:
    [corrected, other] = adjust_comparisons([replace(SHOWN, p_value=0.03), replace(SHOWN, p_value=0.2)])
    assert other.adjusted_p_value == pytest.approx(0.2)
    assert verdict_in_words(corrected, a="judge", b="naive") == (
        "No difference in EM was shown; judge less naive is +3.2 points "
        "(95 % interval +0.4 to +6.0; exact McNemar test, p = 0.060 after Holm's correction; 500 questions). "
        "A true difference of 4.0 points would be found four times out of five with so many questions."
    )


def test_an_interval_that_holds_zero_shows_no_difference_whatever_the_test_says() -> None:
    doubtful = replace(SHOWN, difference=MeanInterval(mean=0.032, low=-0.001, high=0.06, n=500))
    assert verdict_in_words(doubtful, a="judge", b="naive").startswith("No difference in EM was shown")


def test_one_question_is_said_to_be_too_few() -> None:
    words = verdict_in_words(compare_paired([1.0], [0.0], metric="EM", test="mcnemar"), a="judge", b="naive")
    assert words == (
        "No difference in EM was shown; judge less naive is +100.0 points "
        "(no interval; exact McNemar test, p = 1.000; 1 question). "
        "These questions cannot say how small a difference would be found."
    )
