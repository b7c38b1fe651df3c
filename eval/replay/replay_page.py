"""The page of a replay: table, plots and words, in one HTML file that makes no request and has no script."""

from __future__ import annotations

from ...graphs.drawing.html import html_page
from ...modules.storage.texts import html_text
from .. import reports
from ..reports.inline_svg import figures_html
from ..tables.html import facts_html, table_html
from .outcome import Replay
from .policies_table import EXPLAINED, facts_of, policies_table
from .replay_plots import replay_plots


def draw_replay(played: Replay) -> str:
    """Draw the page of a replay.

    ::

        Path("replay.html").write_text(evaluation.draw_replay(evaluation.replay_recording("runs/recorded")))
    """
    title = html_text(f"Replay of {played.of['recording']}")
    sections = {
        "In words": _listed(played.words()),
        "Plots": figures_html(*replay_plots(played.summary)),
        "Policies": f'<p class="faint">{html_text(EXPLAINED)}</p>{table_html(policies_table(played.summary))}',
    }
    main = "".join(f"<section><h2>{name}</h2>{content}</section>" for name, content in sections.items())
    header = f'<header><h1>{title}</h1><dl class="facts">{facts_html(facts_of(played))}</dl></header>'
    return html_page(reports.__name__, title=title, body=f"{header}\n<main>{main}</main>")


def _listed(words: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{html_text(each)}</li>' for each in words)}</ul>"
