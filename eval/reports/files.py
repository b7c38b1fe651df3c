"""The files of a report in its run directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...modules.disk import write_whole
from .loaded_run import load_run
from .page import draw_report
from .report import Report, report_of


def write_report(folder: Path, *, baseline: str | None = None) -> Report:
    """``load_report``, and write report.html, report.md, results.csv and results.parquet into the run directory.

    Raises:
        WritingError: A file could not be written; it is as it was.
        UserError: See ``load_report``.
    """
    run = load_run(folder)
    report = report_of(run, baseline=baseline)
    files = tuple(folder / name for name in ("report.html", "report.md", "results.csv", "results.parquet"))
    page, markdown, table, columns = files
    write_whole(page, draw_report(run, report))
    write_whole(markdown, report.to_markdown() + "\n")
    write_whole(table, report.questions.to_csv(index=False))
    write_whole(columns, report.questions.to_parquet(index=False))
    return replace(report, files=files)
