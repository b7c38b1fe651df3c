"""The report of a sweep as files: a self-contained HTML page, Markdown and CSV.

The page has the table, plots and comparisons, and links to the reports of the runs. It makes no request and has no
script.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

from ...graphs.drawing.html import html_page
from ...modules.settings import Settings
from ...modules.storage.atomic import write_atomic
from ...modules.storage.texts import html_text
from .. import reports
from ..reports.inline_svg import figures_html
from ..reports.page import write_report
from ..reports.verdicts import comparison_frame, comparisons_html
from ..rows.csv_tables import SPREADSHEET, csv_of
from ..tables.html import blocks_html, facts_html
from .sweep_plots import sweep_plots
from .sweep_report import SweepReport, score_sweep


def write_sweep_report(folder: Path, *, settings: Settings | None = None, spreadsheet: bool = False) -> SweepReport:
    """Write the report of each run, and report.html, report.md and CSV files of the sweep.

    With ``spreadsheet``, results.spreadsheet.csv too, of the sweep and of each run; see ``write_report``.

    Raises:
        WritingError: A file could not be written; it is unchanged.
        UserError: The folder holds no sweep, or a run cannot be read.
    """
    report = score_sweep(folder, partial(write_report, settings=settings, spreadsheet=spreadsheet))
    frames = {
        "systems.csv": report.systems,
        "comparisons.csv": comparison_frame(report.comparisons),
        "results.csv": report.questions,
    }
    write_atomic(folder / "report.html", draw_sweep(report))
    write_atomic(folder / "report.md", report.to_markdown() + "\n")
    for name, frame in frames.items():
        write_atomic(folder / name, csv_of(frame))
    if spreadsheet:
        write_atomic(folder / SPREADSHEET, csv_of(report.questions, spreadsheet=True))
    names = ["report.html", "report.md", *frames, *([SPREADSHEET] if spreadsheet else [])]
    return replace(report, files=tuple(folder / name for name in names))


def draw_sweep(report: SweepReport) -> str:
    """Draw the page of a sweep."""
    title = html_text(report.folder.name)
    facts = {**report.provenance, "combinations": len(report.runs), "paid in all": report.paid}
    sections = {
        "Systems": blocks_html(report.means()),
        "Plots": figures_html(*sweep_plots(report.systems, report.questions, report.keys)),
        "Comparisons": comparisons_html(report.comparisons, report.primary),
        "Runs": f"<ul>{''.join(_link(run.name) for run in report.runs)}</ul>",
    }
    main = "".join(f"<section><h2>{name}</h2>{content}</section>" for name, content in sections.items() if content)
    header = f'<header><h1>{title}</h1><dl class="facts">{facts_html(facts)}</dl></header>'
    return html_page(reports.__name__, title=title, body=f"{header}\n<main>{main}</main>")


def _link(name: str) -> str:
    return f'<li><a href="{quote(name)}/report.html">{html_text(name)}</a></li>'
