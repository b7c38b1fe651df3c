"""Scores of a run, from hand-made rows: means, what is missing, what failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.reports.completeness import completeness_counts, damage_lines
from judgetree.evaluation.reports.frames import question_frame, system_frame
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.runs.store import FoundChunk, RunRow
from judgetree.modules.errors import LoadingError

OIL = EvalQuestion(id="oil", question="Which oil?", answers=("Vellin oil", "Vellin"), supporting=("a", "b"))
NOBODY = EvalQuestion(id="nobody", question="Who?", answers=())
UNKNOWN = EvalQuestion(id="unknown", question="What?", answers=(), answers_known=False, supporting=("c",))
QUESTIONS = (OIL, NOBODY, UNKNOWN)


def found(key: str, *, depth: int = 0, rank: int = 0) -> FoundChunk:
    return FoundChunk(key=key, chunk_id=key, depth=depth, rank=rank, verdict="1")


def row(question: EvalQuestion, prediction: str = "", *chunks: FoundChunk, **changes: object) -> RunRow:
    values: dict[str, object] = {
        "system": "judge",
        "question_id": question.id,
        "repeat": 0,
        "attempt": 0,
        "question": question.question,
        "prediction": prediction,
        "status": "answered",
        "error": "",
        "thread_id": "t",
        "seconds": 1.0,
        "tree": None,
        "chunks": chunks,
    }
    return RunRow(**{**values, **changes})  # type: ignore[arg-type]


def test_answers_and_evidence_are_scored() -> None:
    frame = question_frame([row(OIL, "the Vellin", found("a"), found("x", rank=1), found("b", depth=1))], QUESTIONS)
    (scored,) = frame.to_dict(orient="records")
    assert (scored["em"], scored["f1"], scored["cover_em"]) == (1.0, 1.0, 1.0)
    assert (scored["recall@3"], scored["all@3"], scored["mrr"]) == (0.5, 0.0, 1.0)
    assert (scored["tree_recall"], scored["tree_all"]) == (1.0, 1.0)


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
    (told, _) = damage_lines(frame)
    assert told.startswith("Degraded by faults: judge 1 answer (2 failed verdicts, 1 failed sub-run).")
    assert list(damage_lines(frame[:1])) == []


def test_refusal_is_right_only_where_nothing_can_be_known() -> None:
    frame = question_frame([row(NOBODY, "no idea", status="refused"), row(OIL, "no", status="refused")], QUESTIONS)
    assert list(frame["em"]) == [1.0, 0.0]


def test_scores_that_a_data_set_cannot_give_are_missing_and_not_in_the_mean() -> None:
    frame = question_frame([row(UNKNOWN, "x", found("c")), row(NOBODY, status="refused")], QUESTIONS)
    assert list(frame["em"].isna()) == [True, False]
    assert list(frame["recall@3"].isna()) == [False, True]
    means = system_frame(frame, ["em", "recall@3"]).set_index("metric")
    assert list(means["n"]) == [1, 1]


def test_system_that_does_not_retrieve_has_no_retrieval_score() -> None:
    frame = question_frame([row(OIL, "Vellin", system="llm")], QUESTIONS)
    assert frame["recall@3"].isna().all()
    assert list(system_frame(frame, ["em", "recall@3"])["metric"]) == ["em"]


def test_directory_without_a_run_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match="judgetree eval run --out"):
        load_report(tmp_path)
