"""Scores of a run, from hand-made rows: means, what is missing, what failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from judgetree.evaluation.datasets.questions import DialogueTurn, EvalQuestion
from judgetree.evaluation.metrics.context import ContextFigures
from judgetree.evaluation.reports.failures import completeness_counts, damage_remarks
from judgetree.evaluation.reports.frames import common_frame, ks_of, question_frame, retrieval_metrics, system_frame
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.reports.system_table import common_blocks, count_remarks, system_table
from judgetree.evaluation.rows.store import RowChunk, RunRow, RunStore
from judgetree.evaluation.tables.table import Table
from judgetree.modules.errors import LoadingError
from tests.eval.dataset_files import write_lines
from tests.eval.run_rows import run_row, write_run

OIL = EvalQuestion(id="oil", question="Which oil?", answers=("Vellin oil", "Vellin"), supporting=("a", "b"))
NOBODY = EvalQuestion(id="nobody", question="Who?", answers=())
UNKNOWN = EvalQuestion(id="unknown", question="What?", answers=(), answers_known=False, supporting=("c",))
QUESTIONS = (OIL, NOBODY, UNKNOWN)


def found(key: str, *, depth: int = 0, rank: int = 0) -> RowChunk:
    return RowChunk(key=key, chunk_id=key, depth=depth, rank=rank, verdict="1")


def row(question: EvalQuestion, prediction: str = "", *chunks: RowChunk, **changes: object) -> RunRow:
    asked = {"question_id": question.id, "question": question.question}
    return run_row(**{**asked, "prediction": prediction, "chunks": chunks, **changes})


def _texts(table: Table) -> list[list[str]]:
    return [list(map(str, row)) for row in table.rows]


def test_answers_and_evidence_are_scored() -> None:
    frame = question_frame([row(OIL, "the Vellin", found("a"), found("x", rank=1), found("b", depth=1))], QUESTIONS)
    (scored,) = frame.to_dict(orient="records")
    assert (scored["em"], scored["f1"], scored["cover_em"]) == (1.0, 1.0, 1.0)
    assert (scored["recall@3"], scored["all@3"], scored["mrr"]) == (0.5, 0.0, 1.0)
    assert (scored["tree_recall"], scored["tree_all"]) == (1.0, 1.0)


def test_what_readers_saw_is_scored_and_a_failure_scores_nothing() -> None:
    seen = row(OIL, "Vellin", context=ContextFigures(passages=2, answer_in_context=1.0, redundancy=0.25))
    rows = [seen, row(OIL, "Vellin"), row(OIL, status="failed"), row(OIL, status="failed", system="llm")]
    frame = question_frame(rows, QUESTIONS).replace({np.nan: None})
    assert list(frame["answer_in_context"]) == [1.0, None, 0.0, None], "rows of older versions do not say"
    assert list(frame["redundancy"]) == [0.25, None, None, None]


def test_nothing_is_said_of_more_documents_than_were_retrieved() -> None:
    assert ks_of(3) == (3,)
    frame = question_frame([row(OIL, "Vellin", found("a"))], QUESTIONS, ks=ks_of(3))
    assert set(retrieval_metrics(ks_of(3))) <= set(frame.columns)
    assert not [name for name in frame.columns if name.endswith("@10")]


def test_failed_question_scores_nothing_and_stays_in_the_mean() -> None:
    frame = question_frame([row(OIL, "Vellin", found("a")), row(OIL, status="failed", repeat=1)], QUESTIONS)
    assert list(frame["em"]) == [1.0, 0.0]
    assert list(frame["recall@3"]) == [0.5, 0.0]
    means = system_frame(frame, ["em", "recall@3"]).set_index("metric")
    assert (means.loc["em", "mean"], means.loc["em", "n"]) == (0.5, 1), "repeats of a question are its mean"
    assert means.loc["recall@3", "mean"] == 0.25


def test_what_damaged_an_answer_stands_in_columns_and_below_the_table() -> None:
    damaged = row(OIL, "Vellin", damage={"failed_verdicts": 2, "failed_sub_runs": 1})
    frame = question_frame([row(OIL, "Vellin"), damaged, row(NOBODY, status="failed")], QUESTIONS)
    assert list(frame["completeness"]) == ["complete", "degraded", "failed"]
    assert list(frame["damage"]) == ["", "2 failed verdicts, 1 failed sub-run", ""]
    assert (frame["failed_verdicts"].sum(), frame["failed_reranks"].sum()) == (2, 0)
    assert completeness_counts(frame) == {"judge": {"complete": 1, "degraded": 1, "failed": 1}}
    (told,) = damage_remarks(frame)
    assert told.startswith("Degraded by faults: judge 1 answer (2 failed verdicts, 1 failed sub-run).")
    assert list(damage_remarks(frame[:1])) == []


def test_counts_of_repeated_questions_say_that_they_are_of_answers() -> None:
    once = question_frame([row(OIL, "Vellin"), row(OIL, "x", system="naive")], QUESTIONS)
    assert list(count_remarks(once, 0)) == []
    frame = question_frame([row(OIL, "Vellin"), row(OIL, repeat=1), row(OIL, "x", system="naive")], QUESTIONS)
    told = "Questions were repeated: failed, degraded and refused are counts of answers (2 of judge, 1 of naive)."
    assert list(count_remarks(frame, 0)) == [told]


def test_unfinished_run_is_told() -> None:
    frame = question_frame([row(OIL, "Vellin")], QUESTIONS)
    (warning,) = count_remarks(frame, 1_239)
    assert warning.startswith("**Warning: the run is not finished: 1,239 of 1,240 answers are missing.")


def test_refusal_is_right_only_where_nothing_can_be_known() -> None:
    frame = question_frame([row(NOBODY, "no idea", status="refused"), row(OIL, "no", status="refused")], QUESTIONS)
    assert list(frame["em"]) == [1.0, 0.0]


def test_scores_that_a_data_set_cannot_give_are_missing() -> None:
    frame = question_frame([row(UNKNOWN, "x", found("c")), row(NOBODY, status="refused")], QUESTIONS)
    assert list(frame["em"].isna()) == [True, False]
    assert list(frame["recall@3"].isna()) == [False, True]
    means = system_frame(frame, ["em", "recall@3"]).set_index("metric")
    assert list(means["n"]) == [1, 1]


def test_system_that_does_not_retrieve_has_no_retrieval_score() -> None:
    frame = question_frame([row(OIL, "Vellin", system="llm")], QUESTIONS)
    assert frame["recall@3"].isna().all()
    assert list(system_frame(frame, ["em", "recall@3"])["metric"]) == ["em"]


def test_means_are_compared_over_the_questions_that_all_systems_were_asked() -> None:
    third = EvalQuestion(id="third", question="?", answers=("x",), supporting=("a",))
    known = (OIL, third)
    rows = [row(OIL, "Vellin", found("a")), row(third, "x", found("a"))]
    rows += [row(OIL, "wrong", found("a"), system="naive"), row(OIL, "Vellin", system="llm"), row(third, system="llm")]
    frame = question_frame(rows, known)
    metrics = ["em", "recall@3"]
    common = common_frame(frame, metrics).set_index(["metric", "system"])
    assert {place: (each["mean"], each["n"]) for place, each in common.iterrows()} == {
        ("em", "judge"): (1.0, 1),
        ("em", "naive"): (0.0, 1),
        ("em", "llm"): (1.0, 1),
        ("recall@3", "judge"): (0.5, 1),
        ("recall@3", "naive"): (0.5, 1),
    }, "llm, which does not retrieve, takes nothing from the others"
    warning, _, shared = common_blocks(frame, common_frame(frame, metrics), metrics)
    assert "(judge 2, naive 1, llm 2; 1 in common)" in str(warning)
    assert isinstance(shared, Table)
    assert shared.head == ("system", "EM", "recall@3")
    assert _texts(shared)[1] == ["naive", "0.0 (0.0 to 79.3; n 1)", "50.0 (n 1)"]
    table = system_table(frame, system_frame(frame, metrics), metrics)
    assert _texts(table)[0][:6] == ["judge", "2", "0", "0", "0", "100.0 (34.2 to 100.0)"]


def test_cost_that_is_unknown_on_some_questions_is_not_averaged_over_the_others() -> None:
    rows = [row(each, "x", system=system) for system in ("naive", "judge") for each in (OIL, NOBODY)]
    frame = question_frame(rows, QUESTIONS)
    costs = frame.assign(cost_usd=[0.0, None, 0.0, 0.7])
    assert common_frame(costs, ["cost_usd"]).empty
    lone = costs.assign(cost_usd=[0.5, None, 0.5, 0.7]).drop(index=1)
    assert list(common_frame(lone, ["cost_usd"])["mean"]) == [0.5, 0.5]
    unknown = lone.assign(cost_usd=[0.5, None, 0.7])
    assert list(common_frame(unknown, ["cost_usd"])["mean"].isna()) == [False, True]


def test_systems_that_share_no_question_have_no_common_mean() -> None:
    frame = question_frame([row(OIL, "Vellin"), row(NOBODY, "no", system="naive", status="refused")], QUESTIONS)
    assert list(common_frame(frame, ["em"])["n"]) == [0, 0]
    *_, shared = common_blocks(frame, common_frame(frame, ["em"]), ["em"])
    assert isinstance(shared, Table)
    assert ["judge", "unknown (n 0)"] in _texts(shared)


def test_systems_on_the_same_questions_get_no_second_table() -> None:
    frame = question_frame([row(OIL, "Vellin"), row(OIL, "no", system="naive")], QUESTIONS)
    assert common_frame(frame, ["em", "seconds"]).empty
    assert list(common_blocks(frame, common_frame(frame, ["em"]), ["em"])) == []


def test_mean_over_fewer_questions_than_were_asked_names_their_number() -> None:
    frame = question_frame([row(OIL, "Vellin", found("a")), row(NOBODY, status="refused")], QUESTIONS)
    metrics = ["em", "recall@3"]
    table = system_table(frame, system_frame(frame, metrics), metrics)
    assert _texts(table) == [["judge", "2", "0", "0", "1", "100.0 (34.2 to 100.0)", "50.0 (n 1)"]]


def test_turns_of_one_dialogue_are_one_observation() -> None:
    turns = [
        EvalQuestion(
            id=f"t{n}", question="?", answers=("x",), turn=DialogueTurn(dialogue_id=f"d{n // 5}", number=n + 1)
        )
        for n in range(10)
    ]
    frame = question_frame([row(turn, "x") for turn in turns], turns)
    em = system_frame(frame, ["em"]).iloc[0]
    assert (em["n"], em["low"]) == (10, pytest.approx(0.3424, abs=1e-4)), "as of two right out of two"


def test_directory_without_a_run_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match="judgetree eval run --out"):
        load_report(tmp_path)


def test_numbers_are_matched_beside_em_where_gold_is_one(tmp_path: Path) -> None:
    lines = (
        {"id": each, "question": f"{each}?", "golden_answers": [gold]} for each, gold in (("a", "-3.5"), ("b", "x"))
    )
    file = write_lines(tmp_path, *lines)
    run = write_run(tmp_path / "run", {"naive": 0}, dataset=f"flashrag:{file}")
    store = RunStore(run)
    for line in store.read_rows():
        store.append(replace(line, prediction="35"))
    report = load_report(run)
    assert list(report.questions["em"]) == [1.0, 0.0]
    assert report.questions["number_match"].tolist()[0] == 0.0
    assert "The gold answer of 1 of 2 questions is a number. Read `number match` there" in report.to_markdown()
    assert report.to_document()["answer_metrics"] == "2"
