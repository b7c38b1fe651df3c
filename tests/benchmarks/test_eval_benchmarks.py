"""The pure parts of the benchmarks of batch runs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from benchmarks.eval_kills import KILLS, LATENCY_S, QUESTIONS, comparable, differing, moments
from benchmarks.eval_replay import predictions
from benchmarks.eval_runs import peak_resident_mb
from benchmarks.eval_throughput import ideal_s
from benchmarks.synthetic_qa import HOPS, PARAGRAPHS_A_QUESTION, synthetic_questions, write_hotpotqa
from judgetree.app.scripted.answers import ScriptedAnswers
from judgetree.evaluation.datasets.hotpotqa import load_hotpotqa
from judgetree.evaluation.rows.store import RunRow
from judgetree.modules.calls.prices import ModelUsage
from tests.browser import console_messages
from tests.eval.run_rows import run_row, tree_figures


def row(question_id: str = "q", **changes: object) -> RunRow:
    return run_row(**{"question_id": question_id, "tree": tree_figures(llm_calls=4), **changes})


# --- the generated data set ---


def test_same_seed_gives_the_same_questions_in_the_same_order() -> None:
    assert synthetic_questions(12)[:7] == synthetic_questions(7)
    assert synthetic_questions(2, seed=4) != synthetic_questions(2, seed=5)


def test_loader_reads_what_is_written(tmp_path: Path) -> None:
    items = synthetic_questions(11)
    write_hotpotqa(tmp_path / "synthetic.json", items)
    dataset = load_hotpotqa(tmp_path / "synthetic.json")
    assert not dataset.malformed
    assert len(dataset.documents) == len(items) * PARAGRAPHS_A_QUESTION
    assert [question.hops for question in dataset.questions] == list(itertools.islice(itertools.cycle(HOPS), 11))
    assert [question.question for question in dataset.questions] == [item.question.question for item in items]


def test_chain_of_sub_questions_leads_to_the_answer() -> None:
    items = synthetic_questions(len(HOPS))
    model = ScriptedAnswers([item.question for item in items])
    for item in items:
        texts = {each.title: f"{each.title}. {''.join(each.sentences)}" for each in item.paragraphs}
        query, scores = item.question.question, []
        for fact in item.question.supporting:
            score, next_query = model.judge(query, texts[fact.source])
            scores.append(score)
            query = next_query or query
        assert scores == [1] * (len(scores) - 1) + [2]
        assert model.read(query, texts[item.question.supporting[-1].source]) == item.question.answer


def test_others_say_nothing_that_is_asked() -> None:
    for item in synthetic_questions(len(HOPS)):
        gold = {fact.source for fact in item.question.supporting}
        model = ScriptedAnswers([item.question])
        for other in (each for each in item.paragraphs if each.title not in gold):
            assert model.judge(item.question.question, "".join(other.sentences)) == (0, "")


# --- throughput ---


def test_ideal_is_the_longest_chain_of_few_calls_and_all_of_many_by_the_cap() -> None:
    few = [tree_figures(depth=0, llm_calls=4), tree_figures(depth=2, llm_calls=12)]
    assert ideal_s([row(tree=tree) for tree in few]) == 6.0
    assert ideal_s([row(tree=tree_figures(depth=1, llm_calls=8)) for _ in range(80)]) == 10.0


def test_peak_memory_is_that_of_a_python_with_numpy() -> None:
    assert 20 < peak_resident_mb() < 4000


# --- kills ---


def test_moments_are_the_same_each_time_and_end_before_the_run_does() -> None:
    assert moments() == moments()
    assert moments(seed=1) != moments(seed=2)
    calls_of_the_run = sum(1 + 4 * hops for _, hops in zip(range(QUESTIONS), itertools.cycle(HOPS), strict=False))
    for seed in range(20):
        drawn = moments(seed=seed)
        assert len(drawn) == KILLS
        assert all(moment.delay_s <= LATENCY_S for moment in drawn if moment.calls)
        assert sum(moment.calls for moment in drawn) < calls_of_the_run


def test_rows_compare_but_for_seconds_and_who_answered() -> None:
    once = ModelUsage(
        model="m", kind="chat", calls=5, prompt_tokens=90, interrupted_calls=1, interrupted_prompt_tokens=20
    )
    again = ModelUsage(model="m", kind="chat", cached_calls=4, cached_prompt_tokens=70)
    paid = row(seconds=2.0, tree=tree_figures(llm_calls=5, prompt_tokens=90, sub_runs=1), paid=(once,))
    cached = row(seconds=0.1, tree=tree_figures(cached_llm_calls=4, sub_runs=1), paid=(again,))
    assert comparable(paid) == comparable(cached)


CALL = ModelUsage(model="m", kind="chat", calls=1)


@pytest.mark.parametrize(
    "changes", [{"prediction": "Bob"}, {"thread_id": "u"}, {"status": "failed"}, {"paid": (CALL,)}, {"tree": None}]
)
def test_any_other_difference_is_counted(changes: dict[str, object]) -> None:
    assert differing([row("a"), row("b")], [row("b"), row("a")]) == 0
    assert differing([row("a"), row("b")], [row("a", **changes), row("b")]) == 1


def test_missing_row_is_counted_on_either_side() -> None:
    assert differing([row("a")], [row("a"), row("b")]) == 1
    assert differing([row("a"), row("b")], [row("a")]) == 1


# --- replay and report ---


def test_predictions_do_not_depend_on_the_order_of_rows() -> None:
    one, other = row("a"), row("b", prediction="Bob")
    assert predictions([one, other]) == predictions([other, one])
    assert predictions([one, other]) != predictions([one, row("b", prediction="bob")])


def test_console_messages_are_found_in_the_log() -> None:
    log = (
        "[1:1:1122/052151.5:ERROR:dbus/bus.cc:408] Failed to connect to the bus\n"
        '[1:1:1122/052151.6:INFO:CONSOLE:7] "Uncaught ReferenceError: x is not defined", source: file:///a.html (7)\n'
    )
    assert console_messages(log) == ['"Uncaught ReferenceError: x is not defined", source: file:///a.html (7)']
