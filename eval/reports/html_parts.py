"""Parts of the HTML pages of reports: figures and verdicts."""

from __future__ import annotations

from collections.abc import Iterable

from ...modules.storage.texts import html_text
from .compare import Comparison
from .inline_svg import Plot


def figures_of(*plots: Plot) -> str:
    """Build the figures of plots, with their captions."""
    figures = "".join(
        f'<figure id="plot-{plot.name}"><h3>{html_text(plot.title)}</h3>{plot.svg}'
        f"<figcaption>{html_text(plot.caption)}</figcaption></figure>"
        for plot in plots
    )
    return f'<div class="plots">{figures}</div>' if figures else ""


def verdicts_of(comparisons: Iterable[Comparison]) -> str:
    """Build the list of the verdicts of comparisons; those that show a difference are marked."""
    items = (
        f'<li class="{"shown" if each.paired.is_shown else "open"}">{html_text(each.verdict)}</li>'
        for each in comparisons
    )
    return f'<ul class="verdicts">{"".join(items)}</ul>'
