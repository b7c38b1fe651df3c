"""A run as pandas frames: a row for each question with its scores, and a row for each system with its means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields

import pandas as pd

from ...graphs.config.variants import system_name
from ...graphs.drawing.words import format_caveat
from ...graphs.systems.registry import retrieves
from ...modules.calls.prices import Prices, load_prices
from ...modules.caveats.kinds import CAVEAT_KINDS
from ..datasets.questions import EvalQuestion
from ..metrics.answers import WRONG, score_answer
from ..metrics.clusters import clusters_of
from ..metrics.context import SupportScores, answer_in_context, evidence_complete, harmonic_mean, support_scores
from ..metrics.damage import DAMAGE_KINDS, format_damage
from ..metrics.dictionary import column_of
from ..metrics.intervals import Scale
from ..metrics.numbers import number_match
from ..metrics.retrieval import score_retrieval
from ..ragas.scores import RagasScore
from ..rows.store import RunRow
from ..runs.limits import cost_of_row, uncached_cost_of_row
from ..scoring.own_metric import MetricScore
from ..scoring.scores import current_scores
from .means import by_question, in_common, mean_of
from .own_scores import PREFIX, OwnScores
from .ragas import CurrentScores, ragas_columns, ragas_shares
from .turn_columns import turn_columns

KS = (3, 10)
"""Cut-offs of recall@k and all@k, up to the number of retrieved chunks; see ``ks_of``."""
ANSWER_METRICS = ("em", "f1", "precision", "recall", "cover_em", "number_match")
RETRIEVAL_METRICS = ("mrr", "tree_recall", "tree_all")
CONTEXT_METRICS = ("evidence", "support_f1", "joint_f1", "answer_in_context", "redundancy")
_SUPPORT = (*(f"support_{each.name}" for each in fields(SupportScores)), "joint_f1")
SAVED_BY_SHARING = ("shared_questions", "saved_sub_runs", "saved_llm_calls")
"""Columns of runs whose trees share sub-runs."""
COST_METRICS = (
    "llm_calls",
    "cached_llm_calls",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "seconds",
    "paid_llm_calls",
    "paid_prompt_tokens",
    "paid_completion_tokens",
    "paid_cost_usd",
    "paid_seconds",
    "sub_runs",
    "depth",
)
"""Calls, tokens, cost and seconds as if the cache were empty; with the prefix ``paid_``, as they were paid."""
CAVEAT = "caveat_"
"""Before the name of a kind of caveat, the column with its count of calls."""
_MEAN_COLUMNS = ["system", "metric", "mean", "low", "high", "n"]
_RAGAS_SHARES = ragas_shares()
_NEEDS_ALL = frozenset({"cost_usd", "paid_cost_usd"})
"""Metrics whose mean is unknown if a single value is."""


def ks_of(topk: int, further: Iterable[int] = ()) -> tuple[int, ...]:
    """Return the cut-offs for a retriever of ``topk`` chunks: those of ``KS`` and ``further`` below, and ``topk``.

    >>> ks_of(3), ks_of(5), ks_of(20), ks_of(5, [2, 5, 8])
    ((3,), (3, 5), (3, 10, 20), (2, 3, 5))
    """
    return (*sorted({k for k in (*KS, *further) if k < topk}), topk)


def retrieval_metrics(ks: Sequence[int]) -> tuple[str, ...]:
    """Return the retrieval columns: ``recall@3``, ``all@3``, ``ndcg@3``, …, ``mrr``, ``tree_recall``, ``tree_all``."""
    return (*(f"{name}@{k}" for k in ks for name in ("recall", "all", "ndcg")), *RETRIEVAL_METRICS)


def is_share(metric: str) -> bool:
    """Whether the column's values are in [0, 1]: scores of answers and of retrieval, and most of RAGAS."""
    column = column_of(metric)
    return metric in _RAGAS_SHARES or (column is not None and column.unit == "share")


def question_frame(
    rows: Iterable[RunRow],
    questions: Iterable[EvalQuestion],
    *,
    ks: Sequence[int] = KS,
    ragas: Iterable[RagasScore] = (),
    own: Iterable[MetricScore] = (),
    prices: Prices | None = None,
) -> pd.DataFrame:
    """Build a row for each row of the run, in its order: question, outcome, and every score.

    Scores are in [0, 1]; a failed question scores 0. A score is missing if the data set lacks the gold answers or
    documents, if the system does not retrieve, or if a turn was answered without a search. RAGAS scores, scores
    of one's own and facts about turns have columns of their own (``ragas.ragas_columns``, ``own_scores.OwnScores``,
    ``turn_columns.turn_columns``).

    ``completeness`` is "complete", "degraded" or "failed"; ``damage`` describes the damage, and each of
    ``DAMAGE_KINDS`` has a column with its count, as ``caveats`` and ``caveat_…`` do for replies that are worse than
    they look. ``cost_usd`` is the cost of the row's calls, missing if a part is
    unknown; ``cost_known_usd`` is the known part. Calls, tokens, cost and seconds count cached calls as if they had
    been made, so that the order of the systems does not matter; ``paid_…`` counts what was paid.

    Args:
        rows: Rows of the run.
        questions: Questions of its data set.
        ks: Cut-offs of recall@k and all@k; see ``ks_of``.
        ragas: RAGAS scores of the run.
        own: Scores of the run by metrics of one's own.
        prices: Prices of models; None takes judgetree's own.
    """
    prices = prices or load_prices()
    by_id, scores = {question.id: question for question in questions}, current_scores(ragas)
    own_scores = OwnScores(own)
    known = [(row, by_id[row.question_id]) for row in rows if row.question_id in by_id]
    clusters = clusters_of({question.id: question.shares for _, question in known})
    records = [
        _record(row, question, scores, ks)
        | {"cluster": clusters[question.id]}
        | own_scores.columns(row)
        | _cost(row, prices)
        for row, question in known
    ]
    return pd.DataFrame.from_records(records)


def system_frame(frame: pd.DataFrame, metrics: Sequence[str], *, seed: int = 0) -> pd.DataFrame:
    """Compute a row for each system and metric: mean over its questions, 95 % interval, number of questions.

    Shares of 0 and 1 have Wilson's interval, other values the bootstrap's (``metrics.intervals``). The mean of a cost
    is missing if the cost of any question is unknown.

    Args:
        frame: The result of ``question_frame``; repeats of a question count as their mean.
        metrics: Columns of the frame.
        seed: Seed of the bootstrap.
    """
    records = []
    for system, part in frame.groupby("system", sort=False):
        for metric in metrics:
            if metric in _NEEDS_ALL and part[metric].isna().any():
                records.append({"system": system, "metric": metric, "n": part["question_id"].nunique()})
                continue
            interval = mean_of(part, metric, scale=_scale_of(part, metric), seed=seed)
            if interval is not None:
                records.append({"system": system, "metric": metric, **asdict(interval)})
    return pd.DataFrame.from_records(records, columns=_MEAN_COLUMNS)


def _scale_of(part: pd.DataFrame, metric: str) -> Scale:
    """Say whether a column holds shares; of metrics of one's own, those do whose values all are 0 or 1."""
    is_flag = metric.startswith(PREFIX) and bool(part[metric].dropna().isin((0.0, 1.0)).all())
    return "share" if is_share(metric) or is_flag else "amount"


def common_frame(frame: pd.DataFrame, metrics: Sequence[str], *, seed: int = 0) -> pd.DataFrame:
    """Compute ``system_frame`` over common questions, for metrics whose systems have values on different questions.

    Systems without any value of a metric are ignored for it. If two systems share no question, ``n`` is 0 and the mean
    is missing. A cost is over the questions that all were asked, and missing if any of these is unknown. Empty if all
    means are over the same questions.

    Args:
        frame: The result of ``question_frame``.
        metrics: Columns of the frame.
        seed: Seed of the bootstrap.
    """
    parts = {str(system): part for system, part in frame.groupby("system", sort=False)}
    records: list[dict[str, object]] = []
    for metric in metrics:
        common = in_common({system: _population(part, metric) for system, part in parts.items()})
        if common is None:
            continue
        for system, part in parts.items():
            if part[metric].isna().all():
                continue
            shared = system_frame(part[part["question_id"].isin(common)], [metric], seed=seed)
            found = shared.to_dict(orient="records") or [{"system": system, "metric": metric, "n": 0}]
            records += [{str(name): value for name, value in each.items()} for each in found]
    return pd.DataFrame.from_records(records, columns=_MEAN_COLUMNS)


def _population(part: pd.DataFrame, metric: str) -> dict[str, float]:
    if metric in _NEEDS_ALL and part[metric].notna().any():
        return by_question(part.assign(**{metric: 0.0}), metric)
    return by_question(part, metric)


def failure_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Compute a row for each system and kind of failure: number of wrong answers, and their share.

    Columns: ``system``, ``kind`` (see ``failures``), ``answers``, ``share`` in [0, 1] of the system's answers with
    known gold answers. The numbers of a system add up to its answers with an EM of 0. ``frame`` is a
    ``question_frame`` with a column ``failure``.
    """
    records = [
        {"system": system, "kind": kind, "answers": int(count), "share": int(count) / int(part["em"].notna().sum())}
        for system, part in frame.groupby("system", sort=False)
        for kind, count in part["failure"].value_counts().items()
    ]
    return pd.DataFrame.from_records(records, columns=["system", "kind", "answers", "share"])


def records_of(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Convert a frame to records, with None for missing values."""
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
        "damage": format_damage(row.damage),
        **{kind: row.damage.get(kind, 0) for kind in DAMAGE_KINDS},
        "caveats": format_caveat(row.caveats),
        **{f"{CAVEAT}{kind}": row.caveats.get(kind, 0) for kind in CAVEAT_KINDS},
        "thread_id": row.thread_id,
        "code": row.code,
        "seconds": row.seconds_uncached,
        "paid_seconds": row.seconds,
        **answers,
        **_retrieval_scores(row, question, ks),
        **_context_scores(row, question, answers),
        **_figures(row),
        **turn_columns(row, question, em=answers["em"], ks=ks),
        **ragas_columns(row, question, ragas),
    }


def _context_scores(
    row: RunRow, question: EvalQuestion, answers: Mapping[str, float | None]
) -> Mapping[str, float | None]:
    read = _read_keys(row)
    in_context = row.context.answer_in_context if row.context else None
    if row.context is None and row.status == "failed" and retrieves(system_name(row.system)):
        in_context = answer_in_context(question, ())
    return {
        "evidence": None if read is None else evidence_complete(question.supporting, read),
        **_support_scores(None if read is None else support_scores(question.supporting, read), answers),
        "answer_in_context": in_context,
        "redundancy": row.context.redundancy if row.context else None,
    }


def _support_scores(support: SupportScores | None, answers: Mapping[str, float | None]) -> Mapping[str, float | None]:
    precision, recall = answers["precision"], answers["recall"]
    if support is None:
        return dict.fromkeys(_SUPPORT)
    joint = None
    if precision is not None and recall is not None:
        joint = harmonic_mean(precision * support.precision, recall * support.recall)
    return dict(zip(_SUPPORT, (*asdict(support).values(), joint), strict=True))


def _read_keys(row: RunRow) -> list[Collection[str]] | None:
    """Return the documents of each passage that readers saw on the way; None where that is unknown, or not searched."""
    if row.context is not None:
        keys = row.keys_by_chunk
        return None if row.context.read is None else [keys.get(chunk_id, ()) for chunk_id in row.context.read]
    saw_none = row.status == "failed" or (row.tree is not None and not row.chunks)
    return [] if retrieves(system_name(row.system)) and saw_none else None


def _figures(row: RunRow) -> dict[str, float]:
    if row.paid is None:
        return {}
    figures = {name: value for name, value in asdict(row.tree).items() if name != "cached_seconds"} if row.tree else {}
    for prefix, usages in (("", row.uncached_chat_usage), ("paid_", row.chat_usage)):
        figures[f"{prefix}llm_calls"] = sum(usage.calls for usage in usages)
        figures[f"{prefix}prompt_tokens"] = sum(usage.prompt_tokens for usage in usages)
        figures[f"{prefix}completion_tokens"] = sum(usage.completion_tokens for usage in usages)
    figures["cached_llm_calls"] = row.cached_llm_calls
    figures["estimated_llm_calls"] = sum(usage.estimated_calls for usage in row.uncached_chat_usage)
    return figures


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
    scores = score_answer(question, row.prediction, refused=row.status == "refused")
    said = row.prediction if row.status == "answered" else ""
    numbers = number_match(said, question.answers, lang=question.lang)
    return {**asdict(WRONG if row.status == "failed" else scores), "number_match": numbers}


def _retrieval_scores(row: RunRow, question: EvalQuestion, ks: Sequence[int]) -> Mapping[str, float | None]:
    root = [chunk.keys for chunk in row.chunks if chunk.depth == 0 and not chunk.is_linked]
    scores = score_retrieval(root, [chunk.keys for chunk in row.chunks], question.supporting, ks=ks)
    unsearched = row.conversation is not None and row.tree is None and row.status != "failed"
    if scores is None or not retrieves(system_name(row.system)) or unsearched:
        return dict.fromkeys(retrieval_metrics(ks))
    named = {"recall": scores.recall_at, "all": scores.all_at, "ndcg": scores.ndcg_at}
    at_k = {f"{name}@{k}": at[k] for name, at in named.items() for k in ks}
    return {**at_k, "mrr": scores.reciprocal_rank, "tree_recall": scores.tree_recall, "tree_all": scores.tree_all}
