"""``judgetree eval report``: scores a run or a sweep."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ....modules.errors import needs_extra
from ...terminal.terminal import busy, say, width, write_json, write_result
from ..options import Json, RunFolder, Spreadsheet
from .compare import Baseline
from .sweep import is_sweep_folder, report_sweep


def report(
    folder: RunFolder,
    *,
    baseline: Baseline = None,
    latex: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.tex|FOLDER", help="Also write tables for LaTeX (booktabs), in one file or a file each."
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every table as CSV, with all digits.")
    ] = None,
    spreadsheet: Spreadsheet = False,
    plots: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Also write every plot as SVG and PDF.")] = None,
    wide: Annotated[
        bool,
        typer.Option("--wide", help="Print tables as in report.md, whatever the terminal's width, as files get them."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Score a run: a table here; report.html, report.md, results.csv and results.parquet in its directory.

    Examples:
        judgetree eval report runs/first
        judgetree eval report runs/first --latex table.tex
    """
    if is_sweep_folder(folder):
        refused = {"--csv": csv, "--plots": plots, "--baseline": baseline}
        report_sweep(folder, latex=latex, refused=refused, spreadsheet=spreadsheet, as_json=as_json)
        return
    with busy(), needs_extra("eval"):
        from ....evaluation.papers.files import write_csv, write_latex, write_plots
        from ....evaluation.reports.page import write_report

    scored = write_report(folder, baseline=baseline, spreadsheet=spreadsheet)
    wanted = ((write_latex, latex), (partial(write_csv, spreadsheet=spreadsheet), csv), (write_plots, plots))
    files = [*scored.files, *(file for write, path in wanted if path is not None for file in write(scored, path))]
    if as_json:
        write_json(scored.to_document())
    else:
        write_result(scored.to_markdown() if wide or not sys.stdout.isatty() else scored.to_text(width()))
        say(f"Written: {', '.join(map(str, files))}")
