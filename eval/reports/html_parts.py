"""Parts of the HTML pages of reports: Markdown, tables, figures and verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from markdown_it import MarkdownIt

from ...modules.storage.texts import html_text, printable
from .compare import Comparison
from .inline_svg import Plot

_INTERVAL = re.compile(r" \((?=[^()<]*+\)</td>)([^()<]*? to [^()<]*+)\)</td>")


def render_markdown(text: str) -> str:
    """Render Markdown without HTML in it; intervals in tables stand below their means."""
    made = MarkdownIt("commonmark", {"html": False}).enable("table").render(printable(text))
    return _wide(_INTERVAL.sub(r"<small>\1</small></td>", made))


def _wide(tables: str) -> str:
    """Let tables scroll by themselves in a narrow window."""
    return tables.replace("<table>", '<div class="wide"><table class="figures">').replace("</table>", "</table></div>")


def table_of(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Build a table from cells of HTML."""
    lines = ["".join(f"<th>{cell}</th>" for cell in head)]
    lines += ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return _wide(f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>")


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
