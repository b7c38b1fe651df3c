"""Comparisons in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from judgetree.evaluation.metrics.comparison_words import format_verdict
from judgetree.evaluation.metrics.intervals import MeanInterval
from judgetree.evaluation.metrics.power import detectable_difference
from judgetree.evaluation.metrics.statistics import PairedComparison, Unit, adjust_comparisons, compare_paired

SHOWN = PairedComparison(
    metric="EM",
    mean_a=0.532,
    mean_b=0.5,
    difference=MeanInterval(mean=0.032, low=0.004, high=0.06, n=500),
    a_better=38,
    b_better=22,
    test="mcnemar",
    p_value=0.021,
    least_p_value=2.0**-59,
    discordance=0.12,
    smallest_detectable=0.04,
)


def test_a_difference_that_was_shown_is_said_with_its_evidence() -> None:
    assert format_verdict(SHOWN, a="judge", b="naive") == (
        "judge is better than naive by 3.2 points of EM "
        "(95 % interval 0.4 to 6.0; exact McNemar test, p = 0.021; 500 questions)."
    )


def test_the_better_system_is_named_first() -> None:
    worse = replace(SHOWN, difference=MeanInterval(mean=-0.032, low=-0.06, high=-0.004, n=500), p_value=0.0001)
    assert format_verdict(worse, a="judge", b="naive") == (
        "naive is better than judge by 3.2 points of EM "
        "(95 % interval 0.4 to 6.0; exact McNemar test, p < 0.001; 500 questions)."
    )


def test_a_correction_can_take_a_difference_back() -> None:
    [corrected, other] = adjust_comparisons([replace(SHOWN, p_value=0.03), replace(SHOWN, p_value=0.2)])
    assert other.adjusted_p_value == pytest.approx(0.2)
    assert format_verdict(corrected, a="judge", b="naive") == (
        "No difference in EM was shown; judge less naive is +3.2 points "
        "(95 % interval +0.4 to +6.0; exact McNemar test, p = 0.060 after Holm's correction for 2 comparisons; "
        "500 questions). "
        "A true difference of 4.9 points would be found four times out of five with so many questions."
    )


def test_a_difference_beyond_all_scores_is_no_number_of_points() -> None:
    doubtful = replace(SHOWN, p_value=0.5, smallest_detectable=8.167)
    assert format_verdict(doubtful, a="judge", b="naive").endswith(
        "With so few questions, not even the largest possible difference would be found four times out of five."
    )


def test_what_would_be_found_goes_by_the_correction() -> None:
    graded = np.random.default_rng(0).random((2, 50))
    alone = compare_paired(graded[0], graded[1], metric="F1", test="permutation")
    among = adjust_comparisons([alone] * 4)[0]
    assert alone.smallest_detectable is not None and among.smallest_detectable is not None
    # The quantiles of Student's t over 49 differences at .05 and at .05 / 4, each with that of 80 % power.
    ratio = (2.594 + 0.849) / (2.010 + 0.849)
    assert among.smallest_detectable / alone.smallest_detectable == pytest.approx(ratio, rel=0.01)
    scores = np.random.default_rng(0).integers(0, 2, (2, 50)).astype(float)
    discordance = float((scores[0] != scores[1]).mean())
    exact = detectable_difference(50, discordance=discordance, comparisons=4)
    for metric, test in (("em", "mcnemar"), ("f1", "permutation")):
        compared = compare_paired(scores[0], scores[1], metric=metric, test=test)
        assert adjust_comparisons([compared] * 4)[0].smallest_detectable == exact


def test_a_t_test_says_nothing_of_questions_too_few_for_a_permutation_test() -> None:
    """It promised four finds out of five for a difference that one was found of in 4 % of draws."""
    scores = [0.0] * 30

    def compared(differing: int) -> PairedComparison:
        better = [0.8, 0.7, 0.6] * 5
        return compare_paired(
            [*scores, *better[:differing]], [*scores, *[0.3] * differing], metric="f1", test="permutation"
        )

    assert [compared(count).smallest_detectable is None for count in (1, 6, 12)] == [True, True, False]
    assert adjust_comparisons([compared(12)] * 6)[0].smallest_detectable is None


def test_where_no_difference_could_be_shown_that_is_said() -> None:
    six = compare_paired([1.0] * 6, [0.0] * 6, metric="EM", test="mcnemar")
    assert six.is_shown
    [doubtful, *_] = adjust_comparisons([six] * 4)
    assert (doubtful.is_shown, doubtful.can_be_shown) == (False, False)
    assert format_verdict(doubtful, a="a", b="b").endswith(
        "With so few questions among 4 comparisons, no difference would be shown, however large."
    )


def test_equal_differences_have_no_interval() -> None:
    nine = compare_paired([1.0] * 9, [0.5] * 9, metric="F1", test="permutation")
    assert (nine.difference.low, nine.difference.high, nine.is_shown) == (None, None, True)
    assert format_verdict(nine, a="a", b="b").startswith(
        "a is better than b by 50.0 points of F1 (the same difference on each of them, from which no interval follows;"
    )


def test_an_interval_around_zero_shows_no_difference() -> None:
    doubtful = replace(SHOWN, difference=MeanInterval(mean=0.032, low=-0.001, high=0.06, n=500))
    assert format_verdict(doubtful, a="judge", b="naive").startswith("No difference in EM was shown")


def test_one_question_is_said_to_be_too_few() -> None:
    words = format_verdict(compare_paired([1.0], [0.0], metric="EM", test="mcnemar"), a="judge", b="naive")
    assert words == (
        "No difference in EM was shown; judge less naive is +100.0 points "
        "(no interval; exact McNemar test, p = 1.000; 1 question). "
        "With so few questions, no difference would be shown, however large."
    )


def test_systems_that_never_differ_have_no_interval_of_nothing() -> None:
    words = format_verdict(compare_paired([0.5] * 9, [0.5] * 9, metric="F1", test="permutation"), a="judge", b="naive")
    assert words.startswith(
        "No difference in F1 was shown; judge less naive is +0.0 points (the same score on each of them, from which no "
        "interval follows; paired permutation test, p = 1.000; 9 questions)."
    )


def test_a_bound_of_a_p_value_is_not_below_it() -> None:
    em = compare_paired([1.0] * 14 + [0.0] * 11, [0.0] * 25, metric="EM", test="mcnemar")
    f1 = compare_paired([1.0] * 14 + [0.0] * 11, [0.0] * 25, metric="F1", test="permutation")
    corrected = adjust_comparisons([em, f1])[1]
    assert corrected.adjusted_p_value == pytest.approx(2 * 2 * 0.5**14), "0.000244: Holm's steps do not fall"
    assert "p < 0.00025 after Holm's correction for 2 comparisons" in format_verdict(corrected, a="a", b="b")


def test_the_floor_of_a_permutation_test_is_said() -> None:
    floor = 2 / 10_001
    least = replace(SHOWN, test="permutation", p_value=floor, least_p_value=floor, resamples=10_000, b_better=0)
    [corrected, _] = adjust_comparisons([least, replace(SHOWN, p_value=0.5)])
    assert "p < 0.0002, the least that 10,000 random exchanges can give; 500" in format_verdict(least, a="a", b="b")
    assert "p < 0.0004 after Holm's correction for 2 comparisons, the l" in format_verdict(corrected, a="a", b="b")


def test_few_differing_questions_are_said_to_be_unable_to_give_less() -> None:
    few = compare_paired([0.5, 0.75, 1.0], [0.0, 0.0, 0.0], metric="F1", test="permutation")
    assert "p = 0.250, the least that so few differing questions can give; 3" in format_verdict(few, a="a", b="b")


def test_dialogues_are_counted() -> None:
    scores = [1.0, 0.0, 0.5, 0.25]
    compared = compare_paired(
        scores,
        scores[::-1],
        metric="F1",
        test="permutation",
        groups=[("dialogue", "d1")] * 2 + [("dialogue", "d2")] * 2,
    )
    assert "; 4 questions of 2 dialogues)" in format_verdict(compared, a="a", b="b")


@pytest.mark.parametrize(
    ("unit", "said"),
    [("count", "a takes more calls than b, by 2.00 ("), ("score", "b is better than a by 2.000 of calls (")],
)
def test_what_is_better_when_lower_is_said_so(unit: Unit, said: str) -> None:
    difference = MeanInterval(mean=2.0, low=1.9, high=2.1, n=500)
    shown = replace(SHOWN, difference=difference, unit=unit, better="lower", title="calls")
    assert format_verdict(shown, a="a", b="b").startswith(said)
