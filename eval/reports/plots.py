"""The plots of a report, each with a caption and a description in words.

Needs matplotlib (extra ``eval``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from ..calibration.judge_figures import GOLD_SHARES, VERDICTS, Confusion, JudgeFigures
from .failures import FAILURE_KINDS, FAILURE_WORDS
from .inline_svg import Plot, colour_of
from .report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPLIT_WORDS = {"type": "question type", "hops": "hops", "recursion": "recursion"}
_LEGEND_LETTERS, _KEY_LETTERS = 90, 8
"""Letters in a line of a legend, and those that the key beside each name takes."""
_PANEL_INCHES = 3.2
_HEAT = "#0f7fc4"


def plots_of(report: Report) -> list[Plot]:
    """Return the plots of a report that have something to show."""
    names = list(dict.fromkeys(str(system) for system in report.questions["system"]))
    every = (
        cost_plot(report.questions, report.systems),
        latency_plot(report.questions),
        split_plot(report.splits, names),
        confusion_plot({system: figures.confusion for system, figures in report.judges.items()}),
        reliability_plot(report.judges),
        failure_plot(report.failures, names),
    )
    return [plot for plot in every if plot is not None]


def cost_plot(questions: pd.DataFrame, systems: pd.DataFrame) -> Plot | None:
    """Plot EM against model calls per question, cached calls included; one point per system, None without scores.

    ``questions`` is a ``frames.question_frame``, ``systems`` its ``frames.system_frame``.
    """
    scores = systems[systems["metric"] == "em"]
    if scores.empty:
        return None
    made = questions.get("llm_calls")
    calls = {} if made is None else made.groupby(questions["system"]).mean().dropna().to_dict()
    shown = scores[scores["system"].isin(list(calls))]
    if shown.empty:
        return None
    places = list(dict.fromkeys(questions["system"]))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for row in shown.itertuples():
            x, y, colour = calls[row.system], 100 * row.mean, colour_of(places.index(row.system))
            axes.errorbar(x, y, yerr=error_of(row), fmt="o", ms=8, capsize=3, color=colour)
            axes.annotate(str(row.system), (x, y), xytext=(9, 5), textcoords="offset points", color=colour)
        axes.set_xlabel("model calls a question")
        axes.set_ylabel("EM, per cent")
        axes.margins(x=0.15)
        axes.set_xlim(left=0)
        axes.grid(visible=True)

    described = "; ".join(
        f"{row.system}: {100 * row.mean:.1f} at {calls[row.system]:.1f} calls" for row in shown.itertuples()
    )
    return Plot(
        name="cost",
        title="Accuracy against cost",
        caption=f"Mean with 95 % interval.{_own_questions(shown)} Calls count whether they were paid for or came out "
        "of the cache. Up and to the left is better.",
        alt=f"EM in per cent. {described}.",
        draw=draw,
    )


def split_plot(splits: pd.DataFrame, systems: Sequence[str]) -> Plot | None:
    """Plot EM by type, hops and recursion, one panel for each split of a ``means.split_frame``; None without splits.

    ``systems`` are all systems of the run; their order gives the colours.
    """
    shown = splits[splits["metric"] == "em"]
    panels = [(split, rows) for split, rows in shown.groupby("split", sort=False)]
    if not panels:
        return None

    def draw(figure: Figure) -> None:
        widths = [rows["part"].nunique() + 0.5 for _, rows in panels]
        all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=widths)[0]
        for axes, (split, rows) in zip(all_axes, panels, strict=True):
            _draw_split(axes, rows, systems)
            axes.set_xlabel(SPLIT_WORDS[str(split)])
        all_axes[0].set_ylabel("EM, per cent")
        handles, labels = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=_legend_columns(labels))

    described = "; ".join(f"{row.split} {row.part}, {row.system}: {100 * row.mean:.1f}" for row in shown.itertuples())
    return Plot(
        name="splits",
        title="By kind of question",
        caption="Mean with 95 % interval. Recursion “fired” on a question if a system with a judge asked a "
        "sub-question there, any of them where there are several; all systems are measured on the same questions.",
        alt=f"EM in per cent. {described}.",
        draw=draw,
        size_inches=(max(6.4, _PANEL_INCHES * len(panels)), 3.6),
    )


def _legend_columns(names: Sequence[str]) -> int:
    """Return how many names fit beside each other above a plot."""
    return max(1, min(len(names), _LEGEND_LETTERS // (max(map(len, names), default=0) + _KEY_LETTERS)))


def confusion_plot(confusions: Mapping[str, Confusion]) -> Plot | None:
    """Plot the judge's verdicts against the chunks' gold shares, one panel per system; None without systems."""
    if not confusions:
        return None

    def draw(figure: Figure) -> None:
        all_axes = figure.subplots(1, len(confusions), squeeze=False)[0]
        for axes, (system, cells) in zip(all_axes, confusions.items(), strict=True):
            _draw_confusion(axes, cells)
            axes.set_title(system)

    described = "; ".join(
        f"{system}, verdict {verdict}: " + ", ".join(f"{cells[verdict][gold]} with {gold} gold" for gold in GOLD_SHARES)
        for system, cells in confusions.items()
        for verdict in VERDICTS
    )
    return Plot(
        name="confusion",
        title="Verdicts against gold",
        caption="Chunks of the questions themselves, by the verdict and by how much of the gold documents a chunk "
        "holds. Per cent are of the column: a perfect judge has 100 on the diagonal.",
        alt=described,
        draw=draw,
        size_inches=(max(6.4, 3.4 * len(confusions)), 3.0),
    )


def reliability_plot(judges: Mapping[str, JudgeFigures]) -> Plot | None:
    """Plot how often chunks were gold against how often the judge said so; None without probabilities."""
    lines = {
        f"{system}{which}": bins
        for system, figures in judges.items()
        for which, bins in (
            (", before calibration", figures.reliability_before),
            (", calibrated" if figures.reliability_before else "", figures.reliability),
        )
        if bins
    }
    if not lines:
        return None

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
        for place, (label, bins) in enumerate(lines.items()):
            predicted, observed = [each.predicted for each in bins], [each.observed for each in bins]
            axes.plot(predicted, observed, marker="o", color=colour_of(place), label=label)
        axes.set_xlabel("P(needed)")
        axes.set_ylabel("share of gold")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.legend()

    return Plot(
        name="reliability",
        title="Reliability of the judge",
        caption="Chunks of the questions themselves in ten bins of P(needed): how many of a bin's are gold. A "
        "calibrated judge follows the diagonal.",
        alt="; ".join(
            f"{label}: " + ", ".join(f"{each.predicted:.2f} said, {each.observed:.2f} gold" for each in bins)
            for label, bins in lines.items()
        ),
        draw=draw,
        size_inches=(4.4, 4.0),
    )


def latency_plot(questions: pd.DataFrame) -> Plot:
    """Plot seconds per question, one box per system: quartiles, with whiskers at the 5th and 95th percentile.

    ``questions`` is a ``frames.question_frame`` of one row or more.
    """
    groups = questions.groupby("system", sort=False)["seconds"]
    seconds = {str(system): [float(value) for value in values] for system, values in groups}
    names = list(reversed(seconds))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        boxes = axes.bxp(
            [box_of(seconds[name], name) for name in names],
            orientation="horizontal",
            showfliers=False,
            patch_artist=True,
            widths=0.55,
        )
        for place, (box, median) in enumerate(zip(boxes["boxes"], boxes["medians"], strict=True)):
            colour = colour_of(len(names) - 1 - place)
            box.set(facecolor=colour, alpha=0.55, edgecolor=colour)
            median.set(color=colour, linewidth=2)
        for line in (*boxes["whiskers"], *boxes["caps"]):
            line.set(color="#808488")
        axes.set_xlabel("seconds a question")
        axes.set_xlim(left=0)
        axes.grid(visible=True, axis="x")

    described = "; ".join(
        f"{name}: median {box['med']:.2f} s, 95 % within {box['whishi']:.2f} s"
        for name, box in ((name, box_of(values, name)) for name, values in seconds.items())
    )
    return Plot(
        name="latency",
        title="Latency",
        caption="Wall time of a question, waiting for the model included; calls out of the cache count with the time "
        f"that they once took. Box: quartiles; whiskers: 5th and 95th percentile. {described}.",
        alt=described,
        draw=draw,
        size_inches=(6.4, 1.4 + 0.5 * len(names)),
    )


def box_of(values: Sequence[float], label: str) -> dict[str, str | float]:
    """Compute a box for ``Axes.bxp``: quartiles, and whiskers at the 5th and 95th percentile.

    ``Axes.boxplot`` would end its whiskers at the last value within these percentiles.
    """
    names = ("whislo", "q1", "med", "q3", "whishi")
    percentiles = [float(each) for each in np.percentile(values, [5, 25, 50, 75, 95])]
    return {"label": label, **dict(zip(names, percentiles, strict=True))}


def failure_plot(failures: pd.DataFrame, systems: Sequence[str]) -> Plot | None:
    """Plot wrong answers of a ``frames.failure_frame`` by kind and system, as bars; None without wrong answers.

    ``systems`` are all systems of the run; their order gives the colours.
    """
    kinds = [kind for kind in FAILURE_KINDS if kind in set(failures["kind"])]
    if not kinds:
        return None
    counts = failures.set_index(["kind", "system"])["answers"]
    height = 0.8 / len(systems)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for place, system in enumerate(systems):
            at = [-number - (place + 0.5) * height + 0.4 for number in range(len(kinds))]
            bars = axes.barh(
                at, [int(counts.get((kind, system), 0)) for kind in kinds], height, color=colour_of(place), label=system
            )
            axes.bar_label(bars, labels=[str(int(bar.get_width()) or "") for bar in bars], padding=3, fontsize=7)
        axes.set_yticks([-number for number in range(len(kinds))], [FAILURE_WORDS[kind][0] for kind in kinds])
        axes.set_xlabel("wrong answers")
        axes.grid(visible=True, axis="x")
        figure.legend(loc="outside upper center", ncols=_legend_columns(systems))

    described = "; ".join(
        f"{FAILURE_WORDS[kind][0]}: "
        + ", ".join(f"{system} {int(counts.get((kind, system), 0))}" for system in systems)
        for kind in kinds
    )
    return Plot(
        name="failures",
        title="Failure kinds",
        caption="Each wrong answer (exact match 0) counts once, under the first cause that explains it.",
        alt=described,
        draw=draw,
        size_inches=(6.4, 0.9 + len(kinds) * (0.14 + 0.1 * len(systems))),
    )


def _draw_split(axes: Axes, rows: pd.DataFrame, systems: Sequence[str]) -> None:
    parts = list(dict.fromkeys(rows["part"]))
    step = 0.6 / len(systems)
    for place, system in enumerate(systems):
        own = rows[rows["system"] == system]
        at = [parts.index(part) + (place - (len(systems) - 1) / 2) * step for part in own["part"]]
        errors = [error_of(row) for row in own.itertuples()]
        axes.errorbar(
            at,
            100 * own["mean"],
            yerr=[[each[side][0] for each in errors] for side in (0, 1)],
            fmt="o",
            ms=6,
            capsize=2,
            color=colour_of(place),
            label=system,
        )
    sizes = rows.groupby("part")["n"].max()
    axes.set_xticks(range(len(parts)), [f"{part}\nn = {int(sizes[part])}" for part in parts])
    axes.set_xlim(-0.5, len(parts) - 0.5)
    axes.grid(visible=True, axis="y")


def _draw_confusion(axes: Axes, cells: Confusion) -> None:
    verdicts = [verdict for verdict in VERDICTS if verdict != "unknown" or any(cells[verdict].values())]
    shares = [gold for gold in GOLD_SHARES if any(cells[verdict][gold] for verdict in VERDICTS)]
    for x, gold in enumerate(shares):
        column = sum(cells[verdict][gold] for verdict in verdicts)
        for y, verdict in enumerate(verdicts):
            count = cells[verdict][gold]
            share = count / column
            axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=_HEAT, alpha=0.04 + 0.6 * share, lw=0))
            axes.text(x, y, f"{count:,}  ({100 * share:.0f} %)", ha="center", va="center")
    axes.set_xticks(range(len(shares)), shares)
    axes.set_yticks(range(len(verdicts)), verdicts)
    axes.set_xlabel("of the gold, the chunk holds")
    axes.set_ylabel("verdict")
    axes.set_xlim(-0.5, len(shares) - 0.5)
    axes.set_ylim(len(verdicts) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _own_questions(scores: pd.DataFrame) -> str:
    """Warn if the systems' scores cover different numbers of questions; ``""`` otherwise."""
    if scores["n"].nunique() < 2:
        return ""
    counts = ", ".join(f"{row.system} {int(row.n):,}" for row in scores.itertuples())
    return f" Not comparable: each system over questions of its own ({counts})."


def error_of(row: object) -> list[list[float]]:
    """Return the interval's extent below and above the mean, in per cent; NaN draws nothing."""
    mean, low, high = (getattr(row, name) for name in ("mean", "low", "high"))
    if pd.isna(low) or pd.isna(high):
        return [[math.nan], [math.nan]]
    return [[max(0.0, 100 * (mean - low))], [max(0.0, 100 * (high - mean))]]
