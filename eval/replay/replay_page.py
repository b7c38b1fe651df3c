"""The page of a replay: table, plots and words, in one HTML file that makes no request and has no script."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ...graphs.drawing.html import html_page
from ...modules.storage.texts import html_text
from ..reports import html_parts
from .outcome import Replay
from .replay_plots import replay_plots
from .summary import is_shown

_PER_CENT = {"complete": "evidence complete", "recall": "gold recall", "area": "area", "em": "EM", "f1": "F1"}
_EXPLAINED = (
    "Per cent, with 95 % intervals. Complete: all gold documents are among the chunks that some reader is shown; "
    "recall: the share of them; area: the mean recall over the calls from 0 to the budget. Below each is its "
    "difference from the baseline on the same questions, p adjusted by Holm over the policies of a budget; those that "
    "were shown are bold. Coverage: questions in which nothing was asked that is not recorded."
)


def draw_replay(played: Replay) -> str:
    """Draw the page of a replay.

    ::

        Path("replay.html").write_text(evaluation.draw_replay(evaluation.replay_recording("runs/recorded")))
    """
    title = html_text(f"Replay of {played.of['recording']}")
    facts = "".join(
        f"<div><dt>{html_text(name.replace('_', ' '))}</dt><dd>{html_text(value)}</dd></div>"
        for name, value in {**played.of, "baseline": played.baseline}.items()
        if value not in (None, "")
    )
    sections = {
        "In words": _listed(played.words()),
        "Plots": html_parts.figures_of(*replay_plots(played.summary)),
        "Policies": f'<p class="faint">{html_text(_EXPLAINED)}</p>{_table(played.summary)}',
    }
    main = "".join(f"<section><h2>{name}</h2>{content}</section>" for name, content in sections.items())
    header = f'<header><h1>{title}</h1><dl class="facts">{facts}</dl></header>'
    return html_page(html_parts.__package__, title=title, body=f"{header}\n<main>{main}</main>")


def _listed(words: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{html_text(each)}</li>' for each in words)}</ul>"


def _table(summary: pd.DataFrame) -> str:
    scores = {score: name for score, name in _PER_CENT.items() if score in summary}
    head = ("policy", "budget", *scores.values(), "calls", "sub-questions", "coverage")
    return html_parts.table_of(head, (list(_cells(row, list(scores))) for _, row in summary.iterrows()))


def _cells(row: pd.Series[float], scores: list[str]) -> Iterator[str]:
    yield html_text(row["policy"])
    yield f"{row['budget']:,}"
    for score in scores:
        prefix = "" if score == "complete" else f"{score}_"
        yield f"{100 * row[score]:.1f}{_interval(row, prefix)}{_difference(row, score, prefix)}"
    yield f"{row['calls']:.1f}"
    yield f"{row['sub_runs']:.1f}"
    yield f"{100 * row['coverage']:.0f}"


def _interval(row: pd.Series[float], prefix: str) -> str:
    low, high = row[f"{prefix}low"], row[f"{prefix}high"]
    return "" if pd.isna(low) or pd.isna(high) else f"<small>{100 * low:.1f} to {100 * high:.1f}</small>"


def _difference(row: pd.Series[float], score: str, prefix: str) -> str:
    gain, low, high, p = (row.get(f"{prefix}{end}") for end in ("gain", "gain_low", "gain_high", "p"))
    if gain is None or pd.isna(gain):
        return ""
    between = "" if pd.isna(low) else f" ({100 * low:+.1f} to {100 * high:+.1f})"
    words = f"{100 * gain:+.1f}{between}, p {p:.2g}"
    return f"<small>{f'<strong>{words}</strong>' if is_shown(row, score) else words}</small>"
