"""Judges and sub-questions of a chosen quality."""

from __future__ import annotations

import asyncio
from statistics import fmean
from typing import Any

import pytest
from langchain_core.documents import Document

from judgetree.evaluation.calibration.judge_figures import auc
from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import BudgetSpent, NoQuestion, SettingsError
from judgetree.modules.judge.contract import SetVerdict, Verdict, judges_sets
from judgetree.modules.judge.gold import GoldQuestion, GoldTable, Need, sub_question
from judgetree.modules.judge.noise import Noise
from judgetree.modules.judge.noisy import NoisyJudge, NoisySetJudge, NoisyWriter, noisy_judge
from judgetree.modules.judge.prompts import batch_messages, judge_messages
from judgetree.testing import check_judge

METER = CallMeter(node="judge")
QUESTION = "Which oil does KS-1 need, and where does it come from?"


def need(title: str) -> Need:
    return Need(title=title, keys=frozenset({title.lower()}))


CHAIN = GoldQuestion(question=QUESTION, needs=(need("KS-1"), need("Delta"), need("Vellin")), distractors=("Echo",))
TITLES = ("KS-1", "Delta", "Vellin", "Echo", "Foxtrot")
TABLE = GoldTable([CHAIN], documents={title: {title.lower()} for title in TITLES})


def chunk(title: str, text: str = "") -> Document:
    metadata = {"chunk_id": f"id of {title}", "document_key": title.lower()}
    return Document(page_content=f"{title}. {text}", metadata=metadata)


def judged(noise: Noise, query: str, document: Document, *, expand: bool = True) -> Verdict:
    return asyncio.run(NoisyJudge(TABLE, noise).judge(query, document, meter=METER, expand=expand))


def judged_set(noise: Noise, query: str, *titles: str) -> SetVerdict:
    return asyncio.run(NoisySetJudge(TABLE, noise).judge_set(query, [chunk(each) for each in titles], meter=METER))


# --- the calls of a model in its place ---


@pytest.mark.parametrize("is_batched", [False, True])
def test_the_calls_that_a_model_would_make_are_booked(is_batched: bool) -> None:
    meter = CallMeter(node="judge", budget=TreeBudget(limit=3))
    judge = noisy_judge(TABLE, Noise(batched=is_batched))
    chunks = [chunk("KS-1", "It needs oil."), chunk("Echo", "It is a hill. " * 40)]
    if judges_sets(judge):
        asyncio.run(judge.judge_set(QUESTION, chunks, meter=meter))
    else:
        for each in chunks:
            asyncio.run(judge.judge(QUESTION, each, meter=meter))
    asyncio.run(NoisyWriter(TABLE, Noise()).write(QUESTION, chunks[0], ["Why?"], meter=meter))
    records = meter.records
    assert judge.expected_calls(len(chunks)) == len(records) - 1 == (1 if is_batched else 2)
    assert {(each["model"], each["kind"], each["estimated"]) for each in records} == {("simulated", "chat", True)}
    prompts = [each["prompt_tokens"] for each in records]
    shown = [batch_messages(QUESTION, [each.page_content for each in chunks])] if is_batched else []
    shown = shown or [judge_messages(QUESTION, each.page_content) for each in chunks]
    assert prompts[:-1] == [message_tokens(each) for each in shown]
    assert all(each["completion_tokens"] > 0 for each in records)
    with pytest.raises(BudgetSpent):
        for _ in range(3):
            asyncio.run(NoisyWriter(TABLE, Noise()).write(QUESTION, chunks[0], ["Why?"], meter=meter))


# --- the noise ---


@pytest.mark.parametrize("wanted", [0.95, 0.8, 0.7, 0.5])
def test_ratings_have_the_auc_the_recall_and_the_calibration_that_are_asked_for(wanted: float) -> None:
    noise = Noise(auc=wanted, base=0.25)
    gold = [noise.chunk("q", f"g{place}", gold=True) for place in range(4_000)]
    others = [noise.chunk("q", f"o{place}", gold=False) for place in range(12_000)]
    assert auc([p for _, p in gold], [p for _, p in others]) == pytest.approx(wanted, abs=0.015)
    assert fmean(is_needed for is_needed, _ in gold) == pytest.approx(0.93, abs=0.015)
    for low in (0.0, 0.25, 0.5, 0.75):
        binned = [(p, truth) for side, truth in ((gold, 1), (others, 0)) for _, p in side if low <= p < low + 0.25]
        if len(binned) > 500:
            predicted, observed = fmean(p for p, _ in binned), fmean(truth for _, truth in binned)
            assert predicted == pytest.approx(observed, abs=0.03)


def test_scale_changes_probabilities_and_no_verdict() -> None:
    names = [f"c{place}" for place in range(300)]
    said = {scale: [Noise(auc=0.8, scale=scale).chunk("q", name, gold=True) for name in names] for scale in (0.5, 1, 2)}
    assert [needed for needed, _ in said[0.5]] == [needed for needed, _ in said[1]] == [needed for needed, _ in said[2]]
    surest = [max(p for _, p in said[scale]) for scale in (0.5, 1, 2)]
    assert surest == sorted(surest)
    assert len(set(surest)) == 3


def test_noise_depends_on_seed_query_and_chunks_alone() -> None:
    noise = Noise(auc=0.7)
    assert noise.chunk("q", "c", gold=True) == noise.chunk("q", "c", gold=True)
    assert noise.together("q", ["a", "b"], complete=True) == noise.together("q", ["b", "a"], complete=True)
    drawn = {
        Noise(auc=0.7, seed=seed).chunk(query, name, gold=True) for seed in (0, 1) for query in "qr" for name in "cd"
    }
    assert len(drawn) == 8


def test_without_noise_it_is_the_oracle() -> None:
    assert [Noise().chunk("q", "c", gold=gold) for gold in (True, False)] == [(True, 1.0), (False, 0.0)]
    assert Noise().together("q", "c", complete=False) == (False, 0.0)


@pytest.mark.parametrize("parameters", [{"auc": 0.4}, {"auc": 1.1}, {"scale": 0}, {"base": 1.0}, {"writer": 2.0}])
def test_a_parameter_out_of_range_is_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"noisy: {next(iter(parameters))}="):
        Noise(**parameters)


def test_a_writer_is_right_as_often_as_asked_for_and_each_try_is_drawn_anew() -> None:
    noise = Noise(writer=0.75)
    said = [
        [noise.question("q", f"c{place}", attempt, right="r", wrong="w") for attempt in (1, 2)]
        for place in range(2_000)
    ]
    assert fmean(first == "r" for first, _ in said) == pytest.approx(0.75, abs=0.03)
    assert fmean(again == "r" for first, again in said if first == "w") == pytest.approx(0.75, abs=0.05)
    assert noise.question("q", "c", 1, right="", wrong="") is None


# --- the judge and the writer ---


def test_a_text_of_several_documents_is_gold_if_one_of_them_is() -> None:
    shared = chunk("Foxtrot")
    metadata = {**shared.metadata, "also_keys": ["ks-1"]}
    shared = Document(page_content=shared.page_content, metadata=metadata)
    verdict = judged(Noise(), QUESTION, shared)
    assert (verdict.score, verdict.next_query) == (1, sub_question("Delta", then=1))


def test_a_text_of_all_documents_that_are_needed_answers_alone() -> None:
    shared = chunk("KS-1")
    shared.metadata["also_keys"] = ["delta", "vellin"]
    verdict = judged(Noise(), QUESTION, shared)
    assert (verdict.score, verdict.next_query) == (2, "")


def test_an_ideal_judge_asks_along_the_chain() -> None:
    first = judged(Noise(), QUESTION, chunk("KS-1"))
    assert (first.score, first.p_needed, first.next_query) == (1, 1.0, sub_question("Delta", then=1))
    second = judged(Noise(), first.next_query, chunk("Delta"))
    assert (second.score, second.next_query) == (1, sub_question("Vellin"))
    assert judged(Noise(), second.next_query, chunk("Vellin")).score == 2
    assert judged(Noise(), second.next_query, chunk("Delta")).score == 0
    assert judged(Noise(), QUESTION, chunk("Vellin")).next_query == sub_question("KS-1")
    assert judged(Noise(), QUESTION, chunk("Echo")).score == 0
    assert judged(Noise(), QUESTION, chunk("KS-1"), expand=False).next_query == ""


def test_a_wrong_question_is_answered_by_the_document_it_asks_about_unless_the_judge_sees_that_it_is_wrong() -> None:
    wrong, answer, other = sub_question("Echo"), chunk("Echo"), chunk("Vellin")
    assert [judged(Noise(), wrong, each).score for each in (answer, other)] == [2, 0]
    assert judged_set(Noise(), wrong, "Vellin", "Echo").suffices is True
    seeing = Noise(sees_wrong_questions=True)
    assert [judged(seeing, wrong, each).score for each in (answer, other)] == [0, 0]
    assert judged_set(seeing, wrong, "Vellin", "Echo").suffices is False
    assert judged(seeing, sub_question("Vellin"), other).score == 2
    assert judged(Noise(), sub_question("Gamma"), answer).score == 0, "the corpus has no such title"


def test_a_question_about_a_title_that_some_question_needs_needs_its_gold_document() -> None:
    table = GoldTable([CHAIN], documents={"Delta": {"delta", "delta 2"}, "Echo": {"echo", "echo 2"}})
    assert table.needs(sub_question("Delta")) == (need("Delta"),)
    assert table.needs(sub_question("Echo")) == (Need(title="Echo", keys=frozenset({"echo", "echo 2"})),)


def test_a_set_suffices_once_all_gold_is_in_hand_and_else_asks_for_what_it_lacks() -> None:
    assert judged_set(Noise(), QUESTION, "KS-1", "Delta", "Vellin").suffices is True
    part = judged_set(Noise(), QUESTION, "KS-1", "Echo", "Delta")
    assert part.suffices is False
    assert [(each.score, each.next_query) for each in part.verdicts] == [
        (1, sub_question("Vellin")),
        (0, ""),
        (1, sub_question("Vellin")),
    ]


def test_a_wrong_sub_question_is_about_another_title_of_the_passage_or_a_distractor() -> None:
    asked = {
        judged(Noise(auc=0.5, recall=0.999, seed=seed), QUESTION, chunk("Echo", "Foxtrot uses it.")).next_query
        for seed in range(20)
    }
    assert asked - {""} == {sub_question("Foxtrot"), sub_question("Echo")}
    wrong = judged(Noise(writer=0.0), QUESTION, chunk("KS-1"))
    assert wrong.next_query == sub_question("Echo")


def test_further_tries_ask_what_was_not_asked_until_nothing_is_left() -> None:
    writer, tried = NoisyWriter(TABLE, Noise()), [sub_question("Delta", then=1)]
    for expected in (sub_question("Vellin"), sub_question("Echo")):
        tried.append(asyncio.run(writer.write(QUESTION, chunk("KS-1"), tried, meter=METER)))
        assert tried[-1] == expected
    with pytest.raises(NoQuestion, match="all titles were asked about"):
        asyncio.run(writer.write(QUESTION, chunk("KS-1"), tried, meter=METER))


@pytest.mark.parametrize("noise", [Noise(auc=0.8), Noise(auc=0.8, batched=True)])
def test_noisy_judges_keep_the_contract(noise: Noise) -> None:
    check_judge(noisy_judge(TABLE, noise))


def test_another_table_or_noise_is_another_judge() -> None:
    other = GoldTable([GoldQuestion(question=QUESTION, needs=(need("KS-1"),))])
    judges = [NoisyJudge(TABLE, Noise()), NoisyJudge(other, Noise()), NoisyJudge(TABLE, Noise(auc=0.9))]
    assert len({tuple(judge.fingerprint().items()) for judge in judges}) == 3


def test_a_further_try_is_right_as_often_as_it_says() -> None:
    noise = Noise(writer=0.9, retry=0.2)
    first, later = (
        fmean(
            noise.question("q", f"c{each}", attempt, right=["right"], wrong=["wrong"]) == "right"
            for each in range(2_000)
        )
        for attempt in (1, 3)
    )
    assert (first, later) == (pytest.approx(0.9, abs=0.03), pytest.approx(0.2, abs=0.03))
    assert "retry" not in Noise().fingerprint(), "as of versions without it"
    with pytest.raises(SettingsError, match=r"retry=1\.5 is not allowed\. Allowed: 0 to 1"):
        Noise(retry=1.5)
