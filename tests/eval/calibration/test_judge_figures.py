"""A judge's figures, worked out by hand: what counts, confusion, kappa, AUC, reliability, intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.calibration.judge_figures import (
    VERDICTS,
    Estimate,
    GoldShare,
    JudgeFigures,
    VerdictName,
    VerdictWithGold,
    auc,
    judge_figures,
    judged_questions,
    judges_of,
)
from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.rows.store import RowChunk, RunRow
from tests.eval.run_rows import run_row

OIL = EvalQuestion(id="oil", question="Which oil?", answers=("Vellin",), supporting=("a", "b"))
INK = EvalQuestion(id="ink", question="Which ink?", answers=("Gall",), supporting=("c",))
NOBODY = EvalQuestion(id="nobody", question="Who?", answers=())
QUESTIONS = (OIL, INK, NOBODY)


def found(key: str, verdict: str, confidence: float | None = None, *, depth: int = 0) -> RowChunk:
    return RowChunk(key=key, chunk_id=key, depth=depth, rank=0, verdict=verdict, confidence=confidence)


def row(question: EvalQuestion, *chunks: RowChunk, system: str = "judge", repeat: int = 0) -> RunRow:
    asked = {"question_id": question.id, "question": question.question}
    return run_row(system=system, repeat=repeat, prediction="", chunks=chunks, **asked)


def chunk(verdict: VerdictName, gold: GoldShare, confidence: float | None = None) -> VerdictWithGold:
    return VerdictWithGold(verdict=verdict, gold=gold, confidence=confidence)


def figures_of(*questions: Sequence[VerdictWithGold]) -> JudgeFigures:
    figures = judge_figures({str(at): chunks for at, chunks in enumerate(questions)}, resamples=200)
    assert figures is not None
    return figures


def value_of(estimate: Estimate | None) -> float:
    assert estimate is not None
    return estimate.value


# --- what counts ---


def test_chunk_is_gold_in_full_where_its_document_is_the_only_one_needed() -> None:
    judged = judged_questions(
        [row(OIL, found("a", "1", 0.8), found("x", "0", 0.6)), row(INK, found("c", "2", 0.9))], QUESTIONS
    )
    assert judged == {"oil": [chunk("1", "some", 0.8), chunk("0", "none", 0.6)], "ink": [chunk("2", "all", 0.9)]}


def test_chunk_that_stands_for_several_documents_is_gold_for_each() -> None:
    both, one = replace(found("x", "1"), also=("b", "a")), replace(found("x", "0"), also=("a",))
    assert judged_questions([row(OIL, both, one)], QUESTIONS) == {"oil": [chunk("1", "all"), chunk("0", "some")]}


def test_sub_runs_unjudged_chunks_and_questions_without_gold_are_left_out() -> None:
    rows = [
        row(OIL, found("a", "unknown"), found("x", "pending"), found("y", "cancelled"), found("b", "2", depth=1)),
        row(NOBODY, found("x", "0")),
        row(EvalQuestion(id="stranger", question="?", answers=()), found("x", "0")),
    ]
    assert judged_questions(rows, QUESTIONS) == {"oil": [chunk("unknown", "some")]}


def test_repeats_of_a_question_are_one_question() -> None:
    rows = [row(OIL, found("a", "1")), row(OIL, found("a", "0"), repeat=1)]
    figures = judge_figures(judged_questions(rows, QUESTIONS))
    assert figures is not None
    assert (figures.questions, figures.chunks) == (1, 2)


def test_only_systems_that_judge_have_figures() -> None:
    rows = [row(OIL, found("a", "pending"), system="naive"), row(OIL, found("a", "1")), row(OIL, system="llm")]
    assert list(judges_of(rows, QUESTIONS)) == ["judge"]
    assert judge_figures({}) is None


# --- confusion, shares, kappa ---


def test_confusion_counts_each_verdict_by_gold_and_shares_add_up() -> None:
    figures = figures_of(
        [chunk("2", "all"), chunk("0", "none")],
        [chunk("1", "some"), chunk("0", "some"), chunk("unknown", "none"), chunk("1", "none")],
    )
    assert figures.confusion == {
        "0": {"none": 1, "some": 1, "all": 0},
        "1": {"none": 1, "some": 1, "all": 0},
        "2": {"none": 0, "some": 0, "all": 1},
        "unknown": {"none": 1, "some": 0, "all": 0},
    }
    assert {name: share.value for name, share in figures.shares.items()} == pytest.approx(
        {"0": 1 / 3, "1": 1 / 3, "2": 1 / 6, "unknown": 1 / 6}
    )


def test_kappa_is_agreement_beyond_chance() -> None:
    # 6 of 8 agree; both sides say "useless" of half: chance agreement .5, so (.75 - .5) / .5.
    agreeing = [chunk("0", "none")] * 3 + [chunk("1", "some")] * 3
    figures = figures_of(agreeing, [chunk("0", "some"), chunk("1", "none"), chunk("unknown", "all")])
    assert value_of(figures.kappa) == pytest.approx(0.5)


def test_kappa_is_not_defined_where_all_is_of_one_class() -> None:
    assert figures_of([chunk("0", "none")] * 3).kappa is None
    assert figures_of([chunk("unknown", "none")] * 3).kappa is None
    assert value_of(figures_of([chunk("0", "none"), chunk("0", "some")]).kappa) == pytest.approx(0.0)


# --- discrimination ---

ratings = st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=1, max_size=8)


@given(ratings, ratings)
def test_auc_is_the_share_of_pairs_won(gold: list[int | None], others: list[int | None]) -> None:
    pairs = [(one, other) for one in gold for other in others]
    wins = sum(0.5 if None in (one, other) or one == other else float(one > other) for one, other in pairs)  # type: ignore[operator]
    assert auc(gold, others) == pytest.approx(wins / len(pairs))


@pytest.mark.parametrize(("gold", "others"), [([], [1.0]), ([1.0], [])])
def test_auc_of_one_side_is_refused(gold: list[float], others: list[float]) -> None:
    with pytest.raises(ValueError, match="both kinds"):
        auc(gold, others)


def test_auc_goes_by_probability_whatever_the_verdict() -> None:
    first = [chunk("1", "some", 0.6), chunk("0", "none", 0.9), chunk("1", "none", 0.95)]
    second = [chunk("2", "all", 0.7), chunk("1", "none", 0.99), chunk("unknown", "none")]
    figures = figures_of(first, second)
    # First: .6 beats .1 and loses to .95. Second: .7 loses to .99, the unknown ties.
    assert value_of(figures.auc_within) == pytest.approx((0.5 + 0.25) / 2)
    # Over all, .6 and .7 against .1, .95, .99 and the unknown.
    assert value_of(figures.auc_over) == pytest.approx((1 + 0.5 + 1 + 0.5) / 8)
    assert figures.ranked_questions == 2


def test_auc_goes_by_verdicts_where_a_probability_is_missing() -> None:
    figures = figures_of([chunk("1", "some", 0.6), chunk("1", "none", 0.9), chunk("0", "none")])
    assert value_of(figures.auc_within) == pytest.approx(0.75)
    assert (figures.reliability, figures.calibration_error) == ((), None)


def test_questions_with_one_kind_of_chunks_have_no_auc() -> None:
    figures = figures_of([chunk("1", "some")], [chunk("0", "none"), chunk("0", "none")])
    assert (figures.auc_within, figures.ranked_questions) == (None, 0)
    assert value_of(figures.auc_over) == 1.0


def test_zero_gap_is_positive_where_gold_is_thrown_away() -> None:
    figures = figures_of([chunk("0", "some"), chunk("0", "some"), chunk("0", "none"), chunk("1", "none")])
    assert value_of(figures.zero_gap) == pytest.approx(0.5)


# --- reliability ---


def test_reliability_compares_probability_and_share_of_gold_in_each_bin() -> None:
    figures = figures_of(
        [chunk("1", "some", 0.92), chunk("1", "none", 0.98), chunk("1", "all", 1.0)],
        [chunk("0", "none", 0.75), chunk("2", "none", 0.9), chunk("unknown", "none")],
    )
    low, high = figures.reliability
    assert (low.low, low.high, low.chunks, low.observed) == (0.2, 0.3, 1, 0.0)
    assert low.predicted == pytest.approx(0.25)
    assert (high.low, high.high, high.chunks) == (0.9, 1.0, 4)
    assert (high.predicted, high.observed) == (pytest.approx(3.8 / 4), pytest.approx(2 / 4))
    assert value_of(figures.calibration_error) == pytest.approx((0.25 + 4 * 0.45) / 5)


# --- intervals ---


def test_intervals_draw_questions_not_chunks() -> None:
    # Ten chunks of one kind a question: as independent chunks the share of 1 would vary by .15, as questions by .5.
    figures = figures_of([chunk("1", "some")] * 10, [chunk("0", "none")] * 10)
    share = figures.shares["1"]
    assert (share.value, share.low, share.high) == (0.5, 0.0, 1.0)
    of_one_question = figures_of([chunk("1", "some"), chunk("0", "none")]).shares["1"]
    assert (of_one_question.value, of_one_question.low, of_one_question.high) == (0.5, None, None)


judged_chunks = st.builds(
    VerdictWithGold,
    verdict=st.sampled_from(VERDICTS),
    gold=st.sampled_from(["none", "some", "all"]),
    confidence=st.one_of(st.none(), st.floats(0, 1)),
)


@given(st.dictionaries(st.text(max_size=3), st.lists(judged_chunks, max_size=4), max_size=4))
def test_figures_lie_in_their_ranges(judged: dict[str, list[VerdictWithGold]]) -> None:
    figures = judge_figures(judged, resamples=5)
    if figures is None:
        assert not any(judged.values())
        return
    assert math.isclose(sum(share.value for share in figures.shares.values()), 1.0)
    assert sum(sum(counts.values()) for counts in figures.confusion.values()) == figures.chunks
    for estimate, least in ((figures.auc_within, 0.0), (figures.auc_over, 0.0), (figures.kappa, -1.0)):
        assert estimate is None or least <= estimate.value <= 1.0
    assert figures.calibration_error is None or 0.0 <= figures.calibration_error.value <= 1.0
