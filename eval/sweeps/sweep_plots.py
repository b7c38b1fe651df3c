"""The plots of a sweep: how accurate each combination is, and what it costs. Needs matplotlib (extra ``eval``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from ..reports.inline_svg import Plot, colour_of
from ..reports.plots import error_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES_A_POINT = 0.9
_MOST_INCHES = 24.0
_INCHES_A_LETTER = 0.08
_LONGEST_VALUE = 14
"""Most characters of a value in a plot, so that a model's address does not cover its neighbours."""
_MOST_NAMED = 3
"""Most combinations that are named beside one point."""


def sweep_plots(systems: pd.DataFrame, questions: pd.DataFrame, keys: Sequence[str]) -> list[Plot]:
    """Return the plots of the EM of every system: by combination, and against its model calls.

    ``systems`` and ``questions`` are the frames of a ``SweepReport``, ``keys`` the swept keys. Without EM there is no
    plot, without model calls the first alone.
    """
    scores = systems[systems["metric"] == "em"].dropna(subset=["mean"])
    if scores.empty:
        return []
    texts = scores[[*keys]].astype(str)
    scores = scores.assign(place=texts.agg(", ".join, axis=1), label=texts.map(_shortened).agg("\n".join, axis=1))
    plots = [_by_combination(scores, ", ".join(keys))]
    if "llm_calls" in questions:
        made = questions.groupby([*keys, "system"], sort=False)["llm_calls"].mean().rename("calls").reset_index()
        costed = scores.merge(made.dropna(), on=[*keys, "system"])
        plots += [_against_calls(costed, ", ".join(keys))] if len(costed) else []
    return plots


def _by_combination(scores: pd.DataFrame, keys: str) -> Plot:
    labels = dict(zip(scores["place"], scores["label"], strict=True))
    places, names = list(labels), list(dict.fromkeys(scores["system"]))

    width = min(_MOST_INCHES, max(6.4, _INCHES_A_POINT * len(places) + 1))
    widest = max(len(line) for label in labels.values() for line in label.split("\n")) * _INCHES_A_LETTER
    is_upright = widest > width / (len(places) + 1)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for number, (name, rows) in enumerate(scores.groupby("system", sort=False)):
            beside = 0.16 * (number - (len(names) - 1) / 2)
            at = [places.index(each) + beside for each in rows["place"]]
            axes.plot(at, 100 * rows["mean"], lw=0.8, alpha=0.5, color=colour_of(number))
            for x, row in zip(at, rows.itertuples(), strict=True):
                shown = str(name) if x == at[0] else None
                axes.errorbar(
                    x, 100 * row.mean, yerr=error_of(row), fmt="o", capsize=3, color=colour_of(number), label=shown
                )
        axes.set_xticks(range(len(places)), [*labels.values()], fontsize=8, rotation=90 if is_upright else 0)
        axes.set_xlabel(keys)
        axes.set_ylabel("EM, per cent")
        axes.grid(visible=True, axis="y")
        figure.legend(loc="outside upper center", ncols=len(names))

    described = "; ".join(f"{row.system} at {row.place}: {100 * row.mean:.1f}" for row in scores.itertuples())
    return Plot(
        name="sweep",
        title="Accuracy by combination",
        caption="Mean with 95 % interval, over each combination's own questions.",
        alt=f"EM in per cent by {keys}. {described}.",
        draw=draw,
        size_inches=(width, 4.4 if is_upright else 3.6),
    )


def _against_calls(costed: pd.DataFrame, keys: str) -> Plot:
    names = list(dict.fromkeys(costed["system"]))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for number, (name, rows) in enumerate(costed.groupby("system", sort=False)):
            axes.plot(rows["calls"], 100 * rows["mean"], "o", color=colour_of(number), label=str(name))
            for (calls, mean), same in rows.groupby([rows["calls"].round(1), rows["mean"].round(2)])["label"]:
                said = _named_at(same.str.replace("\n", ", "))
                at = (calls, 100 * mean)
                axes.annotate(said, at, (6, 4), textcoords="offset points", fontsize=7, color=colour_of(number))
        axes.set_xlabel("model calls a question")
        axes.set_ylabel("EM, per cent")
        axes.set_xlim(left=0)
        axes.grid(visible=True)
        figure.legend(loc="outside upper center", ncols=len(names))

    described = "; ".join(
        f"{row.system} at {row.place}: {100 * row.mean:.1f} with {row.calls:.1f} calls" for row in costed.itertuples()
    )
    return Plot(
        name="sweep-cost",
        title="Accuracy against cost",
        caption=f"A point for each combination, named by {keys}. Calls count whether they were paid for or came out of "
        "the cache. Up and to the left is better.",
        alt=f"EM in per cent by {keys}. {described}.",
        draw=draw,
    )


def _shortened(value: str) -> str:
    """Return a value on one line; of a long one the end, which tells models and files apart."""
    value = " ".join(value.split())
    return value if len(value) <= _LONGEST_VALUE else f"…{value[1 - _LONGEST_VALUE :]}"


def _named_at(labels: pd.Series[str]) -> str:
    more = len(labels) - _MOST_NAMED
    return " / ".join(labels[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
