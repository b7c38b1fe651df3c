"""What thresholds may be fitted on, how they are fitted, and what is asked and kept."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.evaluation.calibration.calibrate import CalibrationPlan
from judgetree.evaluation.calibration.data import Bm25, cases_of, check_not_held_back, check_not_reported
from judgetree.evaluation.calibration.fit import (
    RatedCase,
    RatedPassage,
    alone_threshold,
    fit_thresholds,
    needed_threshold,
    verdict_of,
)
from judgetree.evaluation.datasets.questions import CorpusDocument, Dataset, EvalQuestion
from judgetree.evaluation.rows.store import RunStore
from judgetree.modules.calls.completion import Completion, TokenLogprob
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import SettingsError
from judgetree.modules.judge.logprob import LogprobJudge
from judgetree.modules.judge.prompts import alone_messages
from judgetree.modules.judge.thresholds import LogprobThresholds
from tests.eval.run_rows import run_row

# --- what thresholds may be fitted on ---


@pytest.mark.parametrize(
    ("name", "split", "said"),
    [
        ("hotpot_train_v1.1.json", None, ""),
        ("hotpotqa_train_100.json", "train", ""),
        ("musique_ans_v1.0_Training.jsonl", None, ""),
        ("latest.json", "train", ""),
        ("evaluated-devices.json", "train", ""),
        ("hotpot_dev_distractor_v1.json", None, "'dev' in its name"),
        ("hotpot_dev_distractor_v1.json", "train", "'dev' in its name"),
        ("Test.json", "train", "'Test' in its name"),
        ("train_and_validation.json", None, "'validation' in its name"),
        ("fever.json", "test", "'test' in its name"),
        ("hotpotqa_500.json", None, "--split train"),
        ("restrained.json", None, "--split train"),
        ("train.json", "other", "Only --split train"),
    ],
)
def test_only_training_questions_are_taken(name: str, split: str | None, said: str) -> None:
    with pytest.raises(SettingsError, match=said) if said else nullcontext():
        check_not_held_back(name, split)


def a_run(folder: Path, question_id: str, question: str, digest: str) -> RunStore:
    store = RunStore(folder)
    folder.mkdir()
    store.write_manifest({"identity": {"dataset_digest": digest}})
    store.append(run_row(system="llm", question_id=question_id, question=question, prediction=""))
    return store


OIL = EvalQuestion(id="oil", question="Which oil is it?", answers=("Vellin",))


@pytest.mark.parametrize(
    ("question_id", "question", "digest", "said"),
    [
        ("oil", "Reworded?", "other", "1 of these questions were asked in the run"),
        ("another", "which  oil is IT?", "other", "(oil)"),
        ("another", "Another?", "same", "this same data set"),
    ],
)
def test_questions_of_a_run_are_refused(
    tmp_path: Path, question_id: str, question: str, digest: str, said: str
) -> None:
    store = a_run(tmp_path / "run", question_id, question, digest)
    with pytest.raises(SettingsError) as told:
        check_not_reported(Dataset(name="x", questions=(OIL,)), "same", store)
    assert said in str(told.value)


def test_run_of_other_questions_is_no_hindrance_and_no_run_is_told(tmp_path: Path) -> None:
    dataset = Dataset(name="x", questions=(OIL,))
    check_not_reported(dataset, "same", a_run(tmp_path / "run", "another", "Another?", "other"))
    with pytest.raises(SettingsError, match="is not a run"):
        check_not_reported(dataset, "same", RunStore(tmp_path / "nowhere"))


# --- which passages are asked about ---


def mills(count: int, *, hops: int | None = 2) -> Dataset:
    """Each mill's question needs its own document and that of its river, or with one hop the mill's alone."""
    documents = [
        CorpusDocument(key=f"{what}{at}", text=text)
        for at in range(count)
        for what, text in (("mill", f"Mill {at} stands on river {at}."), ("river", f"River {at} is {at} miles long."))
    ]
    questions = [
        EvalQuestion(
            id=str(at),
            question=f"How long is the river of mill {at}?",
            answers=("x",),
            hops=hops,
            supporting=(f"mill{at}",) if hops == 1 else (f"mill{at}", f"river{at}"),
        )
        for at in range(count)
    ]
    return Dataset(name="mills", questions=tuple(questions), documents=tuple(documents))


def test_case_has_the_gold_passages_and_the_likeliest_of_the_corpus() -> None:
    case = cases_of(mills(20))[7]
    assert case.gold == ("Mill 7 stands on river 7.", "River 7 is 7 miles long.")
    assert len(case.distractors) == 2
    assert not {*case.gold} & {*case.distractors}
    assert all(passage.startswith("River") for passage in case.distractors), "they share 'long' with the question"
    assert not case.is_single_hop


def test_single_hop_is_known_by_hops_and_by_one_gold_passage() -> None:
    assert all(case.is_single_hop for case in cases_of(mills(20, hops=1)))
    assert not any(case.is_single_hop for case in cases_of(mills(20, hops=None)))


def test_distractors_come_from_the_pool_and_gold_from_anywhere() -> None:
    last = cases_of(mills(20), pool=4)[19]
    assert last.gold == ("Mill 19 stands on river 19.", "River 19 is 19 miles long.")
    assert {*last.distractors} == {"River 0 is 0 miles long.", "River 1 is 1 miles long."}


def test_too_few_questions_or_no_documents_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"19 questions .* too few"):
        cases_of(mills(19))
    with pytest.raises(SettingsError, match="hotpotqa, 2wiki"):
        cases_of(Dataset(name="bare", questions=(OIL,)))


def test_bm25_breaks_ties_by_place_and_passes_over_what_it_is_told() -> None:
    search = Bm25(["cat sat", "dog ran", "cat ran", "cat sat"])
    assert search.likeliest("cat sat", 3) == [0, 3, 2]
    assert search.likeliest("cat sat", 9, without=[0]) == [3, 2, 1]


# --- the fit ---

shares = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(shares, shares, st.floats(0.01, 1.0))
def test_t1_is_the_highest_that_keeps_the_share(gold: list[float], others: list[float], recall: float) -> None:
    threshold = needed_threshold(gold, others, recall=recall)
    wanted = math.ceil(recall * len(gold) - 1e-9)
    assert sum(rating >= threshold for rating in gold) >= wanted
    higher = [rating for rating in (*gold, *others) if rating > threshold]
    # Above the next rating that is kept, fewer gold ones than wanted would be left.
    assert all(sum(rating > each for rating in gold) < wanted for each in higher if each == min(higher))
    assert 0.0 <= threshold <= 1.0


@given(shares, shares, st.floats(0.01, 1.0))
def test_a_passage_of_weight_two_counts_as_two(gold: list[float], others: list[float], recall: float) -> None:
    doubled = needed_threshold([*gold, *gold[:1]], others, recall=recall)
    assert needed_threshold(gold, others, recall=recall, weights=[2.0] + [1.0] * (len(gold) - 1)) == doubled


@given(shares, shares)
def test_t2_lets_few_of_the_others_through(sufficient: list[float], others: list[float]) -> None:
    threshold = alone_threshold(sufficient, others)
    if threshold is not None:
        assert sum(rating >= threshold for rating in others) <= 0.05 * len(others)
        assert sum(rating >= threshold for rating in sufficient) >= 0.2 * len(sufficient)


def test_t2_allows_one_false_2_in_twenty() -> None:
    others = [0.9, *[0.3] * 19]
    assert alone_threshold([0.8, 0.7], others) == 0.5
    assert alone_threshold([0.8, 0.7], others[:19]) is None, "one in nineteen is more than 5 %"


def rated(gold: float | None, other: float | None, *, alone: tuple[float, float] | None = None) -> RatedCase:
    of_gold, of_other = alone or (None, None)
    return RatedCase(
        gold=(RatedPassage(needed=gold, alone=of_gold, answers_alone=alone is not None),),
        others=(RatedPassage(needed=other, alone=of_other),),
    )


def test_judge_that_separates_is_fitted_and_generalises() -> None:
    fit = fit_thresholds([rated(0.8, 0.2, alone=(0.9, 0.1))] * 20)
    assert fit.thresholds == LogprobThresholds(needed=0.5, alone=0.5)
    assert fit.auc_within is not None
    assert (fit.auc_within.mean, fit.auc_over, fit.without_alone, fit.findings) == (1.0, 1.0, "", ())
    assert fit.gold_kept is not None
    assert fit.others_kept is not None
    assert (fit.gold_kept.mean, fit.others_kept.mean) == (1.0, 0.0)
    assert fit.shares == {"0": 0.5, "1": 0.0, "2": 0.5, "unknown": 0.0}


def test_queries_with_passages_of_one_kind_count_for_the_thresholds_alone() -> None:
    whole = rated(0.8, 0.2)
    apart = [*[RatedCase(gold=whole.gold, others=())] * 20, *[RatedCase(gold=(), others=whole.others)] * 20]
    fit = fit_thresholds(apart)
    assert (fit.thresholds.needed, fit.auc_within, fit.auc_over, fit.discriminates) == (0.5, None, 1.0, True)
    assert any("AUC within the query is unknown" in finding for finding in fit.findings)


def test_share_that_is_kept_is_measured_on_questions_held_out_of_the_fit() -> None:
    # Fitted on itself, a recall of 1 is kept always. The one low rating is lost in the fold that holds it out.
    cases = [*[rated(0.8, 0.2)] * 19, rated(0.1, 0.2)]
    fit = fit_thresholds(cases, target_recall=1.0)
    assert fit.thresholds.needed == 0.1
    assert fit.gold_kept is not None
    assert fit.gold_kept.mean == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([rated(0.8, 0.2)] * 20, "there are 0"),
        ([*[rated(0.8, 0.2)] * 10, *[rated(0.8, 0.2, alone=(0.9, 0.1))] * 19], "there are 19"),
        ([rated(0.8, 0.2, alone=(0.1, 0.9))] * 20, "none lets through 20%"),
    ],
)
def test_no_t2_comes_with_its_reason(cases: Sequence[RatedCase], said: str) -> None:
    fit = fit_thresholds(cases)
    assert fit.thresholds.alone is None
    assert said in fit.without_alone


def test_findings_name_a_useless_scale_a_doubtful_one_and_silence() -> None:
    inverted = fit_thresholds([rated(0.2, 0.8)] * 20)
    assert not inverted.discriminates
    assert "no use" in inverted.findings[0]
    doubtful = fit_thresholds([*[rated(0.8, 0.2)] * 11, *[rated(0.2, 0.8)] * 9])
    assert doubtful.discriminates
    assert "not shown to tell" in doubtful.findings[0]
    silent = fit_thresholds([*[rated(0.8, 0.2)] * 15, *[rated(None, None)] * 5])
    assert silent.findings == ("It said neither yes nor no of 25% of the passages.",)
    assert silent.shares["unknown"] == 0.25


def test_judge_that_never_says_yes_or_no_cannot_be_fitted() -> None:
    with pytest.raises(SettingsError, match="neither yes nor no"):
        fit_thresholds([rated(None, None)] * 20)


@pytest.mark.parametrize("recall", [0.0, -0.1, 1.1, math.nan])
def test_target_recall_is_a_share(recall: float) -> None:
    with pytest.raises(SettingsError, match="target_recall"):
        CalibrationPlan(dataset="hotpotqa:train.json", target_recall=recall)


def test_a_file_of_questions_has_no_documents_to_calibrate_on() -> None:
    """It was read, with advice on options that the command lacks, and refused for want of a --corpus."""
    with pytest.raises(SettingsError, match=r"has no documents to judge.*--labels RUN"):
        CalibrationPlan(dataset="questions:train.csv")


class Sayer:
    """Says yes to each of the two questions with a fixed probability."""

    model = "sayer"

    def __init__(self, needed: float | None, alone: float | None) -> None:
        self._needed, self._alone = needed, alone

    async def complete(self, messages: Sequence[Message], *, meter: CallMeter, **_: Any) -> Completion:
        p_yes = self._alone if list(messages) == alone_messages("q", "p") else self._needed
        said = (("maybe", 1.0),) if p_yes is None else (("yes", p_yes), ("no", 1.0 - p_yes))
        tokens = tuple(TokenLogprob(token=token, logprob=math.log(p)) for token, p in said if p > 0)
        return Completion(text="", thinking="", finish_reason="length", first_token=tokens)


P = [None, 0.0, 0.25, 0.5, 1.0]


@pytest.mark.parametrize("alone_threshold", [None, 0.5])
def test_expected_verdict_is_the_one_that_the_judge_gives(alone_threshold: float | None) -> None:
    thresholds = LogprobThresholds(needed=0.5, alone=alone_threshold)
    for needed, alone in ((needed, alone) for needed in P for alone in P):
        judge = LogprobJudge(Sayer(needed, alone), thresholds=thresholds)
        chunk = Document(page_content="p")
        verdict = asyncio.run(judge.judge("q", chunk, meter=CallMeter(node="judge"), expand=False))
        score = "unknown" if verdict.score is None else str(verdict.score)
        assert verdict_of(RatedPassage(needed=needed, alone=alone), thresholds) == score
