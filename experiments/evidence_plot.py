"""Draws evidence against prompt tokens: plain retrieval by its passages, and the judge by its budget of calls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from .outcomes import AGAIN, BREADTH, TEMPLATE

LINES = {"naive": ("naive, by passages", "0.45"), AGAIN: ("judge, again", "C1"), BREADTH: ("judge, by calls", "C0")}
MARKED = (3, 10, 20, 40, 80)
"""Numbers of passages that are written beside the line of plain retrieval."""


def draw(rows: pd.DataFrame, titles: Mapping[str, str], file: Path) -> None:
    """Draw the rows of ``outcomes`` as an SVG picture, a panel for each data set."""
    matplotlib.rcParams["svg.hashsalt"] = file.stem  # the same picture twice
    parts = list(dict.fromkeys(rows["part"]))
    figure = Figure(figsize=(4 * len(parts), 3.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(parts), sharey=True, squeeze=False)[0], parts, strict=True):
        means = rows[rows["part"] == name].groupby(["system", "budget"])[["complete", "tokens"]].mean()
        for system, (label, colour) in LINES.items():
            line = means.loc[system]
            axes.plot(line["tokens"], 100 * line["complete"], color=colour, label=label)
            for budget, each in line[line.index.isin(MARKED)].iterrows():
                if system == "naive":
                    place = (each["tokens"], 100 * each["complete"])
                    axes.annotate(str(budget), place, (2, -11), textcoords="offset points", fontsize=8)
        template = means.loc[TEMPLATE].iloc[0]
        axes.plot(template["tokens"], 100 * template["complete"], "D", color="C2", label="similarity and titles")
        axes.set(title=titles.get(name, name), xlabel="prompt tokens a question", ylim=(0, 100), xlim=(0, None))
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("evidence complete, %")
    figure.axes[-1].legend(loc="lower right", fontsize=8)
    figure.savefig(file, metadata={"Date": None})
