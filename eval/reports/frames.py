"""A run as pandas frames: a row a question with its scores, and a row a system with its means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

import pandas as pd

from ...modules.calls.prices import ModelUsage, Prices, load_prices
from ..datasets.questions import EvalQuestion
from ..metrics.answers import WRONG, score_answer
from ..metrics.damage import DAMAGE_KINDS, damage_in_words
from ..metrics.intervals import Scale
from ..metrics.retrieval import score_retrieval
from ..metrics.tree import TreeFigures
from ..ragas.scores import RagasScore, current_scores
from ..rows.store import RunRow
from ..runs.experiment import RETRIEVING
from ..runs.limits import cost_of_row, uncached_cost_of_row
from .means import by_question, in_common, mean_of
from .ragas import CurrentScores, ragas_columns, ragas_shares
from .turn_columns import turn_columns

KS = (3, 10)
"""The k of recall@k and all@k, as far as so many chunks were retrieved; see ``ks_of``."""
ANSWER_METRICS = ("em", "f1", "precision", "recall", "cover_em")
RETRIEVAL_METRICS = ("mrr", "tree_recall", "tree_all")
COST_METRICS = (
    "chat_calls",
    "cached_chat_calls",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "seconds",
    "paid_chat_calls",
    "paid_prompt_tokens",
    "paid_completion_tokens",
    "paid_cost_usd",
    "paid_seconds",
    "sub_runs",
    "depth",
)
"""Calls, tokens, cost and seconds as if no call had come out of the cache; behind ``paid_``, as they were paid."""
_MEAN_COLUMNS = ["system", "metric", "mean", "low", "high", "n"]
_SHARES = frozenset((*ANSWER_METRICS, *RETRIEVAL_METRICS, *ragas_shares()))
_NEEDS_ALL = frozenset({"cost_usd", "paid_cost_usd"})
"""Metrics whose mean is unknown while a single value is."""


def ks_of(topk: int) -> tuple[int, ...]:
    """The k that say something of a retriever that gives ``topk`` chunks: those of ``KS`` up to it, and itself.

    >>> ks_of(3), ks_of(5), ks_of(20)
    ((3,), (3, 5), (3, 10, 20))
    """
    return (*(k for k in KS if k < topk), topk)


def retrieval_metrics(ks: Sequence[int]) -> tuple[str, ...]:
    """Columns of what was found: ``recall@3``, ``all@3``, …, ``mrr`` among what was retrieved, and of whole trees."""
    return (*(f"{name}@{k}" for k in ks for name in ("recall", "all")), *RETRIEVAL_METRICS)


def is_share(metric: str) -> bool:
    """Whether the column's values lie in [0, 1]: scores of answers and of retrieval, and most of RAGAS."""
    return metric in _SHARES or metric.partition("@")[0] in ("recall", "all")


def question_frame(
    rows: Iterable[RunRow],
    questions: Iterable[EvalQuestion],
    *,
    ks: Sequence[int] = KS,
    ragas: Iterable[RagasScore] = (),
    prices: Prices | None = None,
) -> pd.DataFrame:
    """A row for each row of the run, in its order: what was asked, what came of it, and every score.

    Scores are in [0, 1]. A failed question scores 0. A score that the data set cannot give is missing: answers
    without gold answers, retrieval without gold documents or by a system that does not retrieve. Scores of RAGAS
    stand in columns of their own (see ``ragas.report.ragas_columns``) and are missing wherever there is none.
    A turn that was answered without a search has none of retrieval either; what else is known of turns stands in
    columns of their own (see ``turn_columns.turn_columns``), and calls and tokens are those of search and conversation.
    ``completeness`` is "complete", "degraded" or "failed"; ``damage`` says in words what faults took from an answer,
    and each of ``DAMAGE_KINDS`` has a column that counts it.
    ``cost_usd`` is what the row's own calls cost, and missing where a part of it is unknown; ``cost_known_usd`` is the
    rest of it. Calls, tokens, cost and seconds are those of all calls, as if none had come out of the cache, so that
    systems do not differ by which of them asked first; ``paid_…`` is what was paid.

    Args:
        rows: Of the run.
        questions: Of its data set.
        ks: The k of recall@k and all@k, none above what was retrieved; see ``ks_of``.
        ragas: Its scores by RAGAS.
        prices: None takes those that come with judgetree.
    """
    prices = prices or load_prices()
    by_id, scores = {question.id: question for question in questions}, current_scores(ragas)
    known = [(row, by_id[row.question_id]) for row in rows if row.question_id in by_id]
    records = [_record(row, question, scores, ks) | _cost(row, prices) for row, question in known]
    return pd.DataFrame.from_records(records)


def system_frame(frame: pd.DataFrame, metrics: Sequence[str], *, seed: int = 0) -> pd.DataFrame:
    """A row for each system and metric that it has: mean over its questions, 95 % interval, number of questions.

    Intervals of shares are Wilson's or, where values lie in between, the bootstrap's (``metrics.intervals``). The mean
    of a cost is missing while that of any question is unknown.

    Args:
        frame: As from ``question_frame``; repeats of a question count as their mean.
        metrics: Columns of it.
        seed: Of the bootstrap.
    """
    records = []
    for system, part in frame.groupby("system", sort=False):
        for metric in metrics:
            if metric in _NEEDS_ALL and part[metric].isna().any():
                records.append({"system": system, "metric": metric, "n": part["question_id"].nunique()})
                continue
            interval = mean_of(part, metric, scale=_scale_of(metric), seed=seed)
            if interval is not None:
                records.append({"system": system, "metric": metric, **asdict(interval)})
    return pd.DataFrame.from_records(records, columns=_MEAN_COLUMNS)


def common_frame(frame: pd.DataFrame, metrics: Sequence[str], *, seed: int = 0) -> pd.DataFrame:
    """``system_frame`` over the questions that every system has a value on, for metrics whose systems differ in that.

    Systems without any value of a metric are left out of account: one that does not retrieve has no recall. Where two
    systems share no question, ``n`` is 0 and the mean is missing. Empty where all means are over the same questions.

    Args:
        frame: As from ``question_frame``.
        metrics: Columns of it.
        seed: Of the bootstrap.
    """
    parts = {str(system): part for system, part in frame.groupby("system", sort=False)}
    records: list[dict[str, object]] = []
    for metric in metrics:
        common = in_common({system: by_question(part, metric) for system, part in parts.items()})
        if common is None:
            continue
        for system, part in parts.items():
            if part[metric].isna().all():
                continue
            shared = system_frame(part[part["question_id"].isin(common)], [metric], seed=seed)
            found = shared.to_dict(orient="records") or [{"system": system, "metric": metric, "n": 0}]
            records += [{str(name): value for name, value in each.items()} for each in found]
    return pd.DataFrame.from_records(records, columns=_MEAN_COLUMNS)


def failure_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each system and kind of failure that it has: number of wrong answers, and their share.

    Columns: ``system``, ``kind`` (see ``failures``), ``answers``, ``share`` of the system's answers to questions whose
    gold answers are known, in [0, 1]. The numbers of a system add up to its answers whose EM is 0.

    Args:
        frame: As from ``question_frame``, with a column ``failure``.
    """
    records = [
        {"system": system, "kind": kind, "answers": int(count), "share": int(count) / int(part["em"].notna().sum())}
        for system, part in frame.groupby("system", sort=False)
        for kind, count in part["failure"].value_counts().items()
    ]
    return pd.DataFrame.from_records(records, columns=["system", "kind", "answers", "share"])


def records_of(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Its rows, with None for what is missing."""
    kept = frame.astype(object).where(frame.notna(), None)
    return [{str(name): value for name, value in record.items()} for record in kept.to_dict(orient="records")]


def _record(row: RunRow, question: EvalQuestion, ragas: CurrentScores, ks: Sequence[int]) -> dict[str, object]:
    answers = _answer_scores(row, question)
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
        "completeness": row.completeness,
        "damage": damage_in_words(row.damage),
        **{kind: row.damage.get(kind, 0) for kind in DAMAGE_KINDS},
        "thread_id": row.thread_id,
        "code": row.code,
        "seconds": row.seconds_uncached,
        "paid_seconds": row.seconds,
        **answers,
        **_retrieval_scores(row, question, ks),
        **_figures(row),
        **turn_columns(row, question, em=answers["em"], ks=ks),
        **ragas_columns(row, question, ragas),
    }


def _scale_of(metric: str) -> Scale:
    return "share" if is_share(metric) else "amount"


def _figures(row: RunRow) -> dict[str, float]:
    if row.tree is None and row.paid is None:
        return {}
    figures = {name: value for name, value in asdict(row.tree).items() if name != "cached_seconds"} if row.tree else {}
    chat = [usage for usage in row.paid or () if usage.kind == "chat"]
    if row.paid is None and row.tree is not None:
        chat = [_usage_of(row.tree)]
    for prefix, usages in (("", [usage.as_if_uncached() for usage in chat]), ("paid_", chat)):
        figures[f"{prefix}chat_calls"] = sum(usage.calls for usage in usages)
        figures[f"{prefix}prompt_tokens"] = sum(usage.prompt_tokens for usage in usages)
        figures[f"{prefix}completion_tokens"] = sum(usage.completion_tokens for usage in usages)
    figures["cached_chat_calls"] = sum(usage.cached_calls for usage in chat)
    figures["estimated_chat_calls"] = sum(usage.as_if_uncached().estimated_calls for usage in chat)
    return figures


def _usage_of(tree: TreeFigures) -> ModelUsage:
    return ModelUsage(
        model="",
        kind="chat",
        calls=tree.chat_calls,
        prompt_tokens=tree.prompt_tokens,
        completion_tokens=tree.completion_tokens,
        cached_calls=tree.cached_chat_calls,
    )


def _cost(row: RunRow, prices: Prices) -> dict[str, object]:
    cost, paid = uncached_cost_of_row(row, prices), cost_of_row(row, prices)
    return {
        "cost_usd": cost.usd,
        "cost_known_usd": cost.known_usd,
        "paid_cost_usd": paid.usd,
        "paid_cost_known_usd": paid.known_usd,
    }


def _answer_scores(row: RunRow, question: EvalQuestion) -> Mapping[str, float | None]:
    if not question.answers_known:
        return dict.fromkeys(ANSWER_METRICS)
    failed = row.status == "failed"
    return asdict(WRONG if failed else score_answer(question, row.prediction, refused=row.status == "refused"))


def _retrieval_scores(row: RunRow, question: EvalQuestion, ks: Sequence[int]) -> Mapping[str, float | None]:
    root = [chunk.key for chunk in row.chunks if chunk.depth == 0]
    scores = score_retrieval(root, {chunk.key for chunk in row.chunks}, question.supporting, ks=ks)
    unsearched = row.conversation is not None and row.tree is None and row.status != "failed"
    if scores is None or row.system not in RETRIEVING or unsearched:
        return dict.fromkeys(retrieval_metrics(ks))
    at_k = {f"{name}@{k}": at[k] for name, at in (("recall", scores.recall_at), ("all", scores.all_at)) for k in ks}
    return {**at_k, "mrr": scores.reciprocal_rank, "tree_recall": scores.tree_recall, "tree_all": scores.tree_all}
