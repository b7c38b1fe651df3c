"""Which rows a RAGAS metric applies to, what it is given of them, and how its scores stand in a report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.ragas.metrics import (
    RAGAS_METRICS,
    MetricName,
    NotApplicable,
    contexts_of,
    evidence_of,
    inputs_of,
    metrics_named,
)
from judgetree.evaluation.ragas.scores import RagasScore, Scorer
from judgetree.evaluation.reports.frames import common_frame, question_frame, system_frame
from judgetree.evaluation.reports.ragas import missing_counts, ragas_section
from judgetree.evaluation.rows.store import RowChunk, RunRow
from judgetree.evaluation.scoring.scores import current_scores, finished, row_key
from judgetree.evaluation.tables.markdown import blocks_markdown
from judgetree.graphs.tree.nodes import QueryNode
from judgetree.modules.errors import SettingsError
from judgetree.modules.reader.evidence import render_sub_answer
from tests.eval.ragas_bench import REFUSED, chunk, row, tree_of

WALL = EvalQuestion(id="wall", question="How thick?", answers=("40 mm", "4 cm"))
WELDER = EvalQuestion(id="welder", question="Who?", answers=())
RETRIEVAL_ONLY = EvalQuestion(id="wall", question="How thick?", answers=(), answers_known=False)
FOUND = (RowChunk(key="a", chunk_id="a", depth=0, rank=0, verdict="1"),)

CONTEXT = {"faithfulness", "context_precision", "context_recall"}
REFERENCE = {"context_precision", "context_recall", "answer_correctness", "factual_correctness"}


def reasons(row: RunRow, question: EvalQuestion) -> dict[MetricName, NotApplicable | None]:
    return {name: metric.why_not(row, question) for name, metric in RAGAS_METRICS.items()}


def test_registry_has_every_metric() -> None:
    assert tuple(RAGAS_METRICS) == get_args(MetricName)


def test_answered_question_with_evidence_has_every_score_and_a_failed_one_none() -> None:
    assert set(reasons(row("wall", "40 mm", chunks=FOUND), WALL).values()) == {None}
    assert set(reasons(row("wall", "", status="failed", chunks=FOUND), WALL).values()) == {"question failed"}


def test_system_that_retrieves_nothing_has_no_score_of_its_evidence() -> None:
    without = reasons(row("wall", "40 mm", "llm"), WALL)
    assert {name for name, reason in without.items() if reason == "nothing retrieved"} == CONTEXT


def test_refusal_has_scores_of_its_evidence_and_of_being_right() -> None:
    refused = reasons(row("wall", REFUSED, chunks=FOUND), WALL)
    assert {name for name, reason in refused.items() if reason} == {"faithfulness", "answer_relevancy"}
    assert refused["faithfulness"] == "answer refused"


@pytest.mark.parametrize(
    ("question", "reason"), [(WELDER, "unanswerable question"), (RETRIEVAL_ONLY, "no gold answer")]
)
def test_scores_against_the_gold_answer_need_one(question: EvalQuestion, reason: str) -> None:
    without = reasons(row(question.id, "Ada", chunks=FOUND), question)
    assert {name for name, given in without.items() if given == reason} == REFERENCE


def test_inputs_are_those_of_the_metric() -> None:
    given = inputs_of(RAGAS_METRICS["factual_correctness"], row("wall", "40"), WALL, ())
    assert given == {"response": "40", "reference": "40 mm"}


def test_evidence_is_what_the_reader_saw() -> None:
    tree = tree_of(
        row("wall", ""),
        chunk("Kept.", score=1, sub=("Which?", "That.")),
        chunk("Useless.", score=0),
        chunk("Refused below.", score=1, sub=("Who?", REFUSED)),
    )
    assert evidence_of(tree) == ("s.md\nKept.\nSupplementary question: Which?\nAnswer: That.", "s.md\nRefused below.")
    assert evidence_of(tree_of(row("wall", ""), chunk("All are useless.", score=0))) == ("s.md\nAll are useless.",)


def test_contexts_are_the_chunks_of_the_whole_tree_each_once() -> None:
    tree = tree_of(row("wall", ""), chunk("Kept.", score=1, sub=("Which?", "That.")), chunk("Useless.", score=0))
    below = QueryNode(thread_id="sub", query="Which?", depth=1, chunks=(chunk("Found below."), chunk("Kept.")))
    first, *others = tree.root.chunks
    tree = replace(tree, root=replace(tree.root, chunks=(replace(first, sub_runs=(below,)), *others)))
    raw = contexts_of(tree, "chunks")
    assert sorted(raw) == ["Found below.", "Kept.", "Useless."]
    assert not any("That." in text for text in raw), "no text of a model"
    assert contexts_of(tree, "sub-answers") == evidence_of(tree)


def test_scores_with_sub_answers_stand_in_columns_of_their_own() -> None:
    with_sub_answers = replace(score(ANSWERED, 0.9), scorer=replace(scorer(), contexts="sub-answers"))
    frame = question_frame([ANSWERED], (WALL,), ragas=[score(ANSWERED, 0.8), with_sub_answers])
    assert list(frame["ragas_faithfulness"]) == [0.8]
    assert list(frame["ragas_faithfulness[with sub-answers]"]) == [0.9]


def test_means_are_compared_over_rows_that_all_systems_have_a_score_on() -> None:
    naive, refused = replace(ANSWERED, system="naive"), row("welder", REFUSED, system="naive", chunks=FOUND)
    other = row("welder", "Ada", chunks=FOUND)
    scores = [score(ANSWERED, 0.5), score(other, 1.0), score(naive, 0.5)]
    frame = question_frame([ANSWERED, other, naive, refused], (WALL, WELDER), ragas=scores)
    column = ["ragas_faithfulness"]
    section = ragas_section(frame, system_frame(frame, column), common_frame(frame, column))
    assert section is not None
    text = blocks_markdown(section.blocks)
    assert "| judge | faithfulness | 0.750 (0.500 to 1.000) | 2 | 0.500 | 1 |" in text


def test_evidence_of_follow_ups_is_their_answers() -> None:
    tree = tree_of(row("wall", ""), chunk("Kept."))
    pairs = [render_sub_answer("Which?", "That."), render_sub_answer("Where?", "There.")]
    root = replace(tree.root, evidence="\n\n".join([tree.root.evidence, *pairs]))
    assert evidence_of(replace(tree, root=root)) == ("s.md\nKept.", *pairs)


@pytest.mark.parametrize("value", [math.nan, None, "0.5", 1.5, -0.5, math.inf])
def test_what_is_no_score_is_not_taken_for_one(value: object) -> None:
    with pytest.raises(ValueError, match="RAGAS returned"):
        RAGAS_METRICS["faithfulness"].checked(value)


@given(st.floats(-1, 1))
def test_score_within_the_range_stays_as_it_is(value: float) -> None:
    assert RAGAS_METRICS["answer_relevancy"].checked(value) == value
    assert RAGAS_METRICS["answer_relevancy"].checked(1.0000001) == 1.0


def test_metrics_are_named_in_any_order() -> None:
    assert [metric.name for metric in metrics_named("context_recall, faithfulness")] == [
        "faithfulness",
        "context_recall",
    ]
    assert len(metrics_named(None)) == len(RAGAS_METRICS)
    with pytest.raises(SettingsError, match=r"No such RAGAS metrics: fluency\. Allowed: faithfulness, "):
        metrics_named("fluency")
    with pytest.raises(SettingsError, match="names none"):
        metrics_named(" , ")


def scorer(metric: MetricName = "faithfulness", model: str = "m") -> Scorer:
    return Scorer(metric=metric, ragas="0.4.3", prompts="p", model=model, endpoint="here", embeddings="", replies="r")


def score(row: RunRow, value: float | None, by: Scorer | None = None) -> RagasScore:
    return RagasScore(
        system=row.system,
        question_id=row.question_id,
        repeat=row.repeat,
        attempt=row.attempt,
        scorer=by or scorer(),
        value=value,
        problem="" if value is not None else "it said | nothing",
        calls=2,
        cached_calls=0,
        prompt_tokens=1,
        completion_tokens=1,
        embedded_texts=0,
        seconds=0.1,
    )


ANSWERED = row("wall", "40 mm", chunks=FOUND)


def test_scores_of_the_scorer_that_came_last_are_current() -> None:
    other = replace(ANSWERED, question_id="welder")
    old, new = scorer(model="old"), scorer(model="new")
    kept = [score(ANSWERED, 0.1, old), score(other, 0.2, old), score(ANSWERED, 0.3, new)]
    assert {key: each.value for key, each in current_scores(kept)["faithfulness"].items()} == {row_key(ANSWERED): 0.3}
    back = [*kept, score(ANSWERED, 0.4, old)]
    values = {key: each.value for key, each in current_scores(back)["faithfulness"].items()}
    assert values == {row_key(ANSWERED): 0.4, row_key(other): 0.2}


def test_failed_score_is_finished_unless_it_is_to_be_tried_again() -> None:
    failed = [score(ANSWERED, None)]
    assert finished(failed) == {(row_key(ANSWERED), scorer())}
    assert finished(failed, retry_failed=True) == set()
    assert finished([*failed, score(ANSWERED, 0.5)], retry_failed=True) == {(row_key(ANSWERED), scorer())}


def test_frame_and_report_leave_out_what_has_no_score_and_say_why() -> None:
    refused = row("wall", REFUSED, chunks=FOUND, repeat=1)
    broken = row("welder", "Ada", chunks=FOUND)
    waiting = row("welder", "Ada", chunks=FOUND, repeat=1)
    rows = [ANSWERED, refused, broken, waiting]
    frame = question_frame(rows, (WALL, WELDER), ragas=[score(ANSWERED, 0.8), score(broken, None)])
    assert list(frame["ragas_faithfulness"].isna()) == [False, True, True, True]
    assert list(frame["ragas_faithfulness_missing"]) == [
        "",
        "answer refused",
        "scoring failed: it said | nothing",
        "not scored yet",
    ]
    assert "ragas_context_recall" not in frame, "no column for what was never scored"
    means = system_frame(frame, ["ragas_faithfulness"])
    assert [(each["mean"], each["n"]) for each in means.to_dict(orient="records")] == [(0.8, 1)]
    assert missing_counts(frame)["judge"]["ragas_faithfulness"] == {
        "answer refused": 1,
        "scoring failed": 1,
        "not scored yet": 1,
    }
    section = ragas_section(frame, means, common_frame(frame, ["ragas_faithfulness"]))
    assert section is not None
    table = blocks_markdown(section.blocks)
    assert "| judge | faithfulness | 0.800 | 1 | 0.800 | 1 | 1 answer refused, 1 scoring failed" in table
    assert "m at here, ragas 0.4.3" in table


def test_metric_without_a_single_score_has_no_mean() -> None:
    frame = question_frame([ANSWERED], (WALL,), ragas=[score(ANSWERED, None)])
    means = system_frame(frame, ["ragas_faithfulness"])
    assert means.empty
    section = ragas_section(frame, means, common_frame(frame, ["ragas_faithfulness"]))
    assert section is not None
    assert "| judge | faithfulness |  | 0 |  | 0 | 1 scoring failed |" in blocks_markdown(section.blocks)


def test_report_without_scores_has_no_table() -> None:
    frame = question_frame([ANSWERED], (WALL,))
    assert ragas_section(frame, system_frame(frame, ["em"]), common_frame(frame, ["em"])) is None
