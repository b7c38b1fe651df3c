"""The plots of a replay: what each policy finds by the calls that it makes. Needs matplotlib (extra ``eval``)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..reports.inline_svg import COLOURS, Plot, colour_of
from ..reports.plots import error_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = ("-", "--", ":", "-.")
"""Styles of lines, since there may be more policies than colours."""
_A_ROW = 4
"""Policies in a row of the legend."""
_TITLES: Mapping[str, str] = {
    "complete": "Evidence complete",
    "recall": "Gold recall",
    "em": "Exact match",
    "f1": "F1",
}


def replay_plots(summary: pd.DataFrame) -> list[Plot]:
    """Return a plot of each score of a ``summary.summarize``: a line for each policy, a point for each budget."""
    return [_by_calls(summary, score, title) for score, title in _TITLES.items() if score in summary]


def _by_calls(summary: pd.DataFrame, score: str, title: str) -> Plot:
    prefix = "" if score == "complete" else f"{score}_"
    shown = summary[["budget", "policy", "calls"]].assign(
        mean=summary[score], low=summary[f"{prefix}low"], high=summary[f"{prefix}high"]
    )
    policies = _alike({str(name): rows.sort_values("budget") for name, rows in shown.groupby("policy", sort=False)})
    legend_rows = -(-len(policies) // _A_ROW)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        styles = itertools.product(_LINES, range(len(COLOURS)))
        for (name, rows), (line, colour) in zip(policies, itertools.cycle(styles), strict=False):
            errors = [error_of(row) for row in rows.itertuples()]
            axes.errorbar(
                rows["calls"],
                100 * rows["mean"],
                yerr=[[each[side][0] for each in errors] for side in (0, 1)],
                fmt=f"o{line}",
                ms=4,
                capsize=2,
                lw=1,
                elinewidth=0.6,
                color=colour_of(colour),
                label=name,
            )
        axes.set_xlabel("model calls a question")
        axes.set_ylabel(f"{title.lower() if score != 'f1' else title}, per cent")
        axes.set_xlim(left=0)
        axes.grid(visible=True)
        figure.legend(loc="outside upper center", ncols=_A_ROW)

    described = "; ".join(
        f"{row.policy} within {row.budget} calls: {100 * row.mean:.1f} with {row.calls:.1f}"
        for row in shown.itertuples()
    )
    return Plot(
        name=f"replay-{score}",
        title=f"{title} by calls",
        caption="A line for each policy, a point for each budget at the calls that were made of it, with 95 % "
        "intervals over questions. Up and to the left is better.",
        alt=f"{title} in per cent. {described}.",
        draw=draw,
        size_inches=(6.4, 3.4 + 0.2 * legend_rows),
    )


def _alike(policies: Mapping[str, pd.DataFrame]) -> list[tuple[str, pd.DataFrame]]:
    """Name policies that have the same figures together, since one line would hide the others."""
    named: list[tuple[str, pd.DataFrame]] = []
    for name, rows in policies.items():
        figures = rows.drop(columns="policy").to_numpy()
        for place, (names, others) in enumerate(named):
            if np.array_equal(figures, others.drop(columns="policy").to_numpy(), equal_nan=True):
                named[place] = (f"{names} = {name}", others)
                break
        else:
            named.append((name, rows))
    return named
