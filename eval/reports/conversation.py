"""Figures of conversations: rewrites, retrieval by form of the question, reuse, cost of a turn."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TypeGuard, get_args

import pandas as pd

from ...modules.memory.turns import AnsweredFrom
from ..metrics.conversation import QueryForm
from .markdown_tables import table_head, table_line
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
    shares = {f"from_{source}": _is(frame["answered_from"], source) for source in known}
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


def conversation_lines(frame: pd.DataFrame, *, ks: Sequence[int], history: str) -> list[str]:
    """Write the section "Conversation" in Markdown; empty for a run without dialogues.

    Args:
        frame: The result of ``conversation_frame``.
        ks: The ``ks`` that it was made with.
        history: The experiment's ``history``.
    """
    if frame.empty:
        return []
    means = {
        (str(each["system"]), str(each["metric"]), str(each["part"])): each for each in frame.to_dict(orient="records")
    }
    systems = list(dict.fromkeys(str(system) for system in frame["system"]))
    whose = "the systems' own answers" if history == "own" else "the data set's turns"
    lines = [
        "",
        "## Conversation",
        "",
        f"Turns were asked after {whose}. Means over the turns that did not fail; shares in per cent; in brackets 95 % "
        "intervals, for which dialogues are drawn as a whole.",
    ]
    lines += _rewrite_table(means, systems)
    lines += _needed_table(means, systems)
    lines += _form_table(means, systems, ks)
    lines += _reuse_table(means, systems)
    return lines


_Means = Mapping[tuple[str, str, str], Mapping[Hashable, object]]
"""Means by system, metric and part."""


def _is(column: pd.Series, source: str) -> pd.Series:
    return column.map(lambda of: float(of == source), na_action="ignore")


def _rewrite_table(means: _Means, systems: Sequence[str]) -> Iterator[str]:
    if not any(metric in REWRITE_METRICS for _, metric, _ in means):
        return
    head = ["rewrite", "n", "ROUGE-1 recall of the human's", "of follow-ups", "exact", "of follow-ups"]
    columns = [(metric, part) for metric in REWRITE_METRICS for part in (ALL, FOLLOW_UPS)]
    counts = {system: _count(means, system, REWRITE_METRICS[0], ALL) for system in systems}
    yield from _table(
        head,
        ([system, str(n), *(_cell(means, system, *each, n=n) for each in columns)] for system, n in counts.items()),
    )


def _needed_table(means: _Means, systems: Sequence[str]) -> Iterator[str]:
    if not any(metric in NEEDED_METRICS for _, metric, _ in means):
        return
    counts = {system: _count(means, system, "needed_f1", ALL) for system in systems}
    yield from _table(
        ["earlier turns that follow-ups need", "n", "precision", "recall", "F1"],
        (
            [system, str(n), *(_cell(means, system, each, ALL, n=n) for each in NEEDED_METRICS)]
            for system, n in counts.items()
        ),
    )


def _form_table(means: _Means, systems: Sequence[str], ks: Sequence[int]) -> Iterator[str]:
    names = {f"{name}@{k}": words for k in ks for name, words in (("recall", "supporting"), ("all", "all supporting"))}
    heads = [f"{words} @{name.partition('@')[2]}" for name, words in names.items() for _ in (ALL, FOLLOW_UPS)]
    heads[1::2] = ["of follow-ups"] * len(names)
    rows = [
        [system, FORM_NAMES[form], str(n), *cells]
        for system in systems
        for form in FORMS
        if (n := _count(means, system, f"{form}_{next(iter(names))}", ALL))
        if (cells := [_cell(means, system, f"{form}_{name}", of, n=n) for name in names for of in (ALL, FOLLOW_UPS)])
    ]
    if rows:
        yield ""
        yield (
            "Above, a turn that was answered without a search is in no mean of retrieval; here, every turn whose "
            "documents are known was searched for in each form of its question."
        )
        yield from _table(["search", "with the question", "n", *heads], rows)


def _reuse_table(means: _Means, systems: Sequence[str]) -> Iterator[str]:
    sources = [source for source in SOURCES if any(metric == f"from_{source}" for _, metric, _ in means)]
    named = ["answered anew" if source == "search" else f"from {source.replace('_', ' ')}" for source in sources]
    rows = []
    for system in systems:
        n = _count(means, system, "turn_calls", ALL)
        cells = [_cell(means, system, metric, FOLLOW_UPS, n=n) for metric in REUSE_METRICS]
        cells += [_cell(means, system, f"from_{source}", ALL, n=n) for source in sources]
        cells += [_cell(means, system, metric, ALL, n=n, scale=1.0) for metric in TURN_METRICS]
        rows.append([system, str(n), *cells])
    yield from _table(["turns", "n", "follow-ups that reuse", "of these wrongly", *named, "calls", "tokens"], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from ("", *table_head(head), *map(table_line, rows))


def _count(means: _Means, system: str, metric: str, part: str) -> int:
    n = means.get((system, metric, part), {}).get("n", 0)
    return n if isinstance(n, int) else 0


def _cell(means: _Means, system: str, metric: str, part: str, *, n: int, scale: float = 100.0) -> str:
    """Format a cell as "91.3 (88.0 to 94.1; n 60)"; n only if it differs from the line's, ``""`` without a mean."""
    found = means.get((system, metric, part), {})
    mean, low, high = (found.get(name) for name in ("mean", "low", "high"))
    if not isinstance(mean, float):
        return ""
    own = _count(means, system, metric, part)
    notes = [f"{low * scale:.1f} to {high * scale:.1f}"] if _is_number(low) and _is_number(high) else []
    notes += [f"n {own:,}"] if own != n else []
    return f"{mean * scale:.1f} ({'; '.join(notes)})" if notes else f"{mean * scale:.1f}"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and not math.isnan(value)
