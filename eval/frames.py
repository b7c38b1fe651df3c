"""A run as pandas frames: a row a question with its scores, and a row a system with its means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

import pandas as pd

from .answer_metrics import WRONG, score_answer
from .experiment import RETRIEVING
from .questions import EvalQuestion
from .retrieval_metrics import score_retrieval
from .run_store import RunRow
from .statistics import mean_interval

KS = (3, 10)
ANSWER_METRICS = ("em", "f1", "precision", "recall", "cover_em")
RETRIEVAL_METRICS = (
    *(f"{name}@{k}" for k in KS for name in ("recall", "all")),
    "mrr",
    "tree_recall",
    "tree_all",
)
COST_METRICS = ("chat_calls", "cached_chat_calls", "prompt_tokens", "completion_tokens", "seconds", "sub_runs", "depth")


def question_frame(rows: Iterable[RunRow], questions: Iterable[EvalQuestion]) -> pd.DataFrame:
    """A row for each row of the run, in its order: what was asked, what came of it, and every score.

    Scores are in [0, 1]. A failed question scores 0. A score that the data set cannot give is missing: answers
    without gold answers, retrieval without gold documents or by a system that does not retrieve.
    """
    by_id = {question.id: question for question in questions}
    records = [_record(row, by_id[row.question_id]) for row in rows if row.question_id in by_id]
    return pd.DataFrame.from_records(records)


def system_frame(frame: pd.DataFrame, metrics: Sequence[str], *, seed: int = 0) -> pd.DataFrame:
    """A row for each system and metric that it has: mean over questions, 95 % bootstrap interval, number of questions.

    Args:
        frame: As from ``question_frame``; repeats of a question count as their mean.
        metrics: Columns of it.
        seed: Of the bootstrap.
    """
    records = []
    for system, part in frame.groupby("system", sort=False):
        for metric in metrics:
            values = part.groupby("question_id", sort=False)[metric].mean().dropna()
            if len(values):
                interval = mean_interval([float(value) for value in values], seed=seed)
                records.append({"system": system, "metric": metric, **asdict(interval)})
    return pd.DataFrame.from_records(records, columns=["system", "metric", "mean", "low", "high", "n"])


def _record(row: RunRow, question: EvalQuestion) -> dict[str, object]:
    figures = asdict(row.tree) if row.tree else {}
    return {
        "system": row.system,
        "question_id": row.question_id,
        "repeat": row.repeat,
        "attempt": row.attempt,
        "type": question.type,
        "hops": question.hops,
        "lang": question.lang,
        "question": row.question,
        "answers": " | ".join(question.answers),
        "prediction": row.prediction,
        "status": row.status,
        "error": row.error,
        "thread_id": row.thread_id,
        "seconds": row.seconds,
        **_answer_scores(row, question),
        **_retrieval_scores(row, question),
        **figures,
    }


def _answer_scores(row: RunRow, question: EvalQuestion) -> Mapping[str, float | None]:
    if not question.answers_known:
        return dict.fromkeys(ANSWER_METRICS)
    failed = row.status == "failed"
    return asdict(WRONG if failed else score_answer(question, row.prediction, refused=row.status == "refused"))


def _retrieval_scores(row: RunRow, question: EvalQuestion) -> Mapping[str, float | None]:
    root = [chunk.key for chunk in row.chunks if chunk.depth == 0]
    scores = score_retrieval(root, {chunk.key for chunk in row.chunks}, question.supporting, ks=KS)
    if scores is None or row.system not in RETRIEVING:
        return dict.fromkeys(RETRIEVAL_METRICS)
    at_k = {f"{name}@{k}": at[k] for name, at in (("recall", scores.recall_at), ("all", scores.all_at)) for k in KS}
    return {**at_k, "mrr": scores.reciprocal_rank, "tree_recall": scores.tree_recall, "tree_all": scores.tree_all}
