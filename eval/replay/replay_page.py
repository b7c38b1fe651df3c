"""The page of a replay: table, plots and words, in one HTML file that makes no request and has no script."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ...graphs.drawing.html import html_page
from ...modules.storage.texts import html_text
from .. import reports
from ..reports.inline_svg import figures_html
from ..tables.html import table_html
from ..tables.table import Cell, Table, estimate_cell
from .outcome import Replay
from .replay_plots import replay_plots
from .summary import is_shown

_PER_CENT = {"complete": "evidence complete", "recall": "gold recall", "area": "area", "em": "EM", "f1": "F1"}
_EXPLAINED = (
    "Per cent, with 95 % intervals. Complete: all gold documents are among the chunks that some reader is shown; "
    "recall: the share of them; area: the mean recall over the calls from 0 to the budget. Below each is its "
    "difference from the baseline on the same questions, p adjusted by Holm over all policies and budgets; a figure "
    "whose difference was shown is bold. Coverage: questions in which nothing was asked that is not recorded."
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
        "Plots": figures_html(*replay_plots(played.summary)),
        "Policies": f'<p class="faint">{html_text(_EXPLAINED)}</p>{table_html(_table(played.summary))}',
    }
    main = "".join(f"<section><h2>{name}</h2>{content}</section>" for name, content in sections.items())
    header = f'<header><h1>{title}</h1><dl class="facts">{facts}</dl></header>'
    return html_page(reports.__name__, title=title, body=f"{header}\n<main>{main}</main>")


def _listed(words: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{html_text(each)}</li>' for each in words)}</ul>"


def _table(summary: pd.DataFrame) -> Table:
    scores = {score: name for score, name in _PER_CENT.items() if score in summary}
    head = ("policy", "budget", *scores.values(), "calls", "sub-questions", "coverage")
    return Table.of(head, (list(_cells(row, list(scores))) for _, row in summary.iterrows()))


def _cells(row: pd.Series[float], scores: list[str]) -> Iterator[Cell | str]:
    yield str(row["policy"])
    yield f"{row['budget']:,}"
    for score in scores:
        prefix = "" if score == "complete" else f"{score}_"
        low, high, difference = row[f"{prefix}low"], row[f"{prefix}high"], _difference(row, prefix)
        is_bold = bool(difference) and is_shown(row, score)
        yield estimate_cell(row[score], low, high, _per_cent, note=difference, is_bold=is_bold)
    yield f"{row['calls']:.1f}"
    yield f"{row['sub_runs']:.1f}"
    yield f"{100 * row['coverage']:.0f}"


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f}"


def _difference(row: pd.Series[float], prefix: str) -> str:
    gain, low, high, p = (row.get(f"{prefix}{end}") for end in ("gain", "gain_low", "gain_high", "p"))
    if gain is None or pd.isna(gain):
        return ""
    between = "" if pd.isna(low) else f" ({100 * low:+.1f} to {100 * high:+.1f})"
    return f"{100 * gain:+.1f}{between}, p {p:.2g}"
