"""Figures of conversations: rewrites, retrieval by form of the question, reuse, cost of a turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import get_args

import pandas as pd

from ...modules.memory.turns import AnsweredFrom
from ..metrics.conversation import QueryForm
from ..tables.table import Block, Cell, Section, Table, estimate_cell
from .means import mean_of
from .turn_columns import FORMS, NEEDED_METRICS, REUSE_METRICS, REWRITE_METRICS, TURN_METRICS, form_metrics

FORM_NAMES: Mapping[QueryForm, str] = {
    "raw": "as asked",
    "joined": "all questions joined",
    "rewrite": "our stand-alone question",
    "human": "the human's",
}
SOURCES: tuple[AnsweredFrom, ...] = get_args(AnsweredFrom)
ALL, FOLLOW_UPS = "all", "follow-ups"
_COLUMNS = ["system", "metric", "part", "mean", "low", "high", "n"]


def conversation_frame(frame: pd.DataFrame, *, ks: Sequence[int], seed: int = 0) -> pd.DataFrame:
    """Compute a row for each system, metric and part: mean over turns, 95 % interval, number of turns.

    ``part`` is "all" or "follow-ups", the turns with an earlier turn. Metrics are the columns of
    ``turn_columns.turn_columns``, and ``from_search`` and so on, the shares of turns by source of the answer. The
    bootstrap draws whole dialogues. Empty for a run without dialogues.

    Args:
        frame: The result of ``frames.question_frame``; repeats of a turn count as their mean.
        ks: The k of the frame's columns, or some of them.
        seed: Seed of the bootstrap.
    """
    if "answered_from" not in frame:
        return pd.DataFrame(columns=_COLUMNS)
    known = [source for source in SOURCES if (frame["answered_from"] == source).any()]
    answered = frame["answered_from"].notna()
    shares = {f"from_{source}": frame["answered_from"].eq(source).astype(float).where(answered) for source in known}
    turns = frame.assign(**shares)
    metrics = (*REWRITE_METRICS, *NEEDED_METRICS, *REUSE_METRICS, *form_metrics(ks), *shares, *TURN_METRICS)
    records = [
        {"system": system, "metric": metric, "part": part, **asdict(interval)}
        for system, own in turns.groupby("system", sort=False)
        for metric in metrics
        for part, rows in ((ALL, own), (FOLLOW_UPS, own[own["follow_up"].eq(True)]))
        if (interval := mean_of(rows, metric, scale="amount" if metric in TURN_METRICS else "share", seed=seed))
    ]
    return pd.DataFrame.from_records(records, columns=_COLUMNS)


def conversation_section(frame: pd.DataFrame, *, ks: Sequence[int], history: str) -> Section | None:
    """Return the section "Conversation"; None for a run without dialogues.

    Args:
        frame: The result of ``conversation_frame``.
        ks: The ``ks`` that it was made with.
        history: The experiment's ``history``.
    """
    if frame.empty:
        return None
    means: _Means = frame.set_index(["system", "metric", "part"]).to_dict("index")
    systems = list(dict.fromkeys(str(system) for system in frame["system"]))
    whose = "the systems' own answers" if history == "own" else "the data set's turns"
    blocks: list[Block] = [
        f"Turns were asked after {whose}. Means over the turns that did not fail; shares in per cent; in brackets 95 % "
        "intervals, for which dialogues are drawn as a whole.",
    ]
    parts = (ALL, FOLLOW_UPS)
    sources = [source for source in SOURCES if any(metric == f"from_{source}" for _, metric, _ in means)]
    named = ["answered anew" if source == "search" else f"from {source.replace('_', ' ')}" for source in sources]
    blocks += _table(
        means,
        systems,
        ["rewrite", "n", "ROUGE-1 recall of the human's", "of follow-ups", "exact", "of follow-ups"],
        [(metric, part) for metric in REWRITE_METRICS for part in parts],
        counted=REWRITE_METRICS[0],
    )
    blocks += _table(
        means,
        systems,
        ["earlier turns that follow-ups need", "n", "precision", "recall", "F1"],
        [(metric, ALL) for metric in NEEDED_METRICS],
        counted="needed_f1",
    )
    blocks += _form_table(means, systems, ks)
    blocks += _table(
        means,
        systems,
        ["turns", "n", "follow-ups that reuse", "of these wrongly", *named, "calls", "tokens"],
        [
            *((metric, FOLLOW_UPS) for metric in REUSE_METRICS),
            *((metric, ALL) for metric in (*(f"from_{source}" for source in sources), *TURN_METRICS)),
        ],
        counted="turn_calls",
    )
    return Section(title="Conversation", blocks=tuple(blocks))


_Means = Mapping[tuple[str, str, str], Mapping[str, float]]
"""By system, metric and part: mean, low, high (NaN without an interval) and n."""


def _table(
    means: _Means, systems: Sequence[str], head: Sequence[str], columns: Sequence[tuple[str, str]], *, counted: str
) -> Iterator[Table]:
    """Yield the table of the means of each column (metric, part), a row a system; nothing without any of these means.

    The number of the row is that of the metric ``counted``.
    """
    if not any((system, *column) in means for system in systems for column in columns):
        return
    rows: list[list[Cell | str]] = []
    for system in systems:
        n = _count(means, system, counted)
        rows.append([system, str(n), *(_cell(means, system, *column, n=n) for column in columns)])
    yield Table.of(head, rows)


def _form_table(means: _Means, systems: Sequence[str], ks: Sequence[int]) -> Iterator[Block]:
    names = {f"{name}@{k}": words for k in ks for name, words in (("recall", "supporting"), ("all", "all supporting"))}
    heads = [f"{words} @{name.partition('@')[2]}" for name, words in names.items() for _ in (ALL, FOLLOW_UPS)]
    heads[1::2] = ["of follow-ups"] * len(names)
    rows: list[list[Cell | str]] = [
        [system, FORM_NAMES[form], str(n), *cells]
        for system in systems
        for form in FORMS
        if (n := _count(means, system, f"{form}_{next(iter(names))}"))
        if (cells := [_cell(means, system, f"{form}_{name}", of, n=n) for name in names for of in (ALL, FOLLOW_UPS)])
    ]
    if rows:
        yield (
            "Above, a turn that was answered without a search is in no mean of retrieval; here, every turn whose "
            "documents are known was searched for in each form of its question."
        )
        yield Table.of(["search", "with the question", "n", *heads], rows, texts=2)


def _count(means: _Means, system: str, metric: str) -> int:
    return int(means[system, metric, ALL]["n"]) if (system, metric, ALL) in means else 0


def _cell(means: _Means, system: str, metric: str, part: str, *, n: int) -> Cell:
    """Return the cell of a mean, which names its n where that differs from the row's; an empty one without a mean."""
    found = means.get((system, metric, part))
    if found is None:
        return Cell(text="")
    scale = 1 if metric in TURN_METRICS else 100
    note = "" if found["n"] == n else f"n {int(found['n']):,}"
    return estimate_cell(found["mean"], found["low"], found["high"], lambda value: f"{value * scale:.1f}", note=note)
