"""The files of a run for a paper: tables in LaTeX and CSV, plots in SVG and PDF."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.figure import Figure

from ...modules.errors import SettingsError
from ...modules.storage.atomic import replacing, write_atomic
from ...modules.storage.texts import printable
from ...modules.storage.write_errors import refusing_full_disk
from ..reports.inline_svg import Plot, plot_settings
from ..reports.plots import plots_of
from ..reports.report import Report
from ..reports.verdicts import comparison_frame
from ..rows.csv_tables import csv_of
from ..rows.provenance import provenance_words
from ..tables.latex import latex_document
from ..tables.table import Table
from .tables import paper_tables

logger = logging.getLogger(__name__)

_TEX = ".tex"
_FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "SimHei")
"""Fonts in the order in which a glyph is looked for; those that are not installed are left out."""
_METADATA = {"svg": ("Date", "Description"), "pdf": ("CreationDate", "Subject")}
"""Name of the date, which is left out, and of the description."""


def write_latex(report: Report, path: Path | str) -> tuple[Path, ...]:
    r"""Write the tables of a report with booktabs, to be read with ``\input``; its comparisons take seconds.

    ::

        write_latex(load_report("runs/a"), "paper/tables.tex")

    Args:
        report: The report of a run.
        path: A file, if it ends with ``.tex``, for all tables; else a folder, for a file each.

    Returns:
        The written files.

    Raises:
        SettingsError: ``path`` is a file where a folder is needed, or the other way round.
        WritingError: A file could not be written; it is unchanged.
    """
    return write_tables(paper_tables(report), Path(path), made_of=provenance_words(report.provenance))


def write_tables(tables: Sequence[Table], path: Path, *, made_of: str = "") -> tuple[Path, ...]:
    """Write tables as ``write_latex`` does; ``made_of`` says of what, in a comment."""
    if path.suffix == _TEX:
        if path.is_dir():
            raise SettingsError(f"{path} is a folder. Name a file that ends with {_TEX}, or another folder.")
        files = {_folder(path.parent) / path.name: latex_document(tables, made_of=made_of)}
    else:
        folder = _folder(path)
        files = {folder / f"{table.name}{_TEX}": latex_document([table], made_of=made_of) for table in tables}
    for file, text in files.items():
        write_atomic(file, text)
    return tuple(files)


def write_csv(report: Report, folder: Path | str, *, spreadsheet: bool = False) -> tuple[Path, ...]:
    """Write the frames of a report that have a row, as CSV files with all digits: a file for each frame.

    ``systems``, ``common``, ``splits``, ``failures``, ``noise`` and ``conversation`` are those of ``Report``;
    ``comparisons`` has the paired tests on all questions and on each kind (``compare.comparison_frame``). With
    ``spreadsheet``, texts that begin like a formula have an apostrophe before them.

    ::

        write_csv(load_report("runs/a"), "paper/csv")

    Returns:
        The written files.

    Raises:
        SettingsError: ``folder`` is a file.
        WritingError: A file could not be written; it is unchanged.
    """
    frames = {
        "systems": report.systems,
        "common": report.common,
        "splits": report.splits,
        "comparisons": comparison_frame((*report.comparisons, *report.split_comparisons)),
        "failures": report.failures,
        "noise": report.noise,
        "conversation": report.conversation,
    }
    folder = _folder(Path(folder))
    files = {folder / f"{name}.csv": frame for name, frame in frames.items() if not frame.empty}
    for file, frame in files.items():
        write_atomic(file, csv_of(frame, spreadsheet=spreadsheet))
    return tuple(files)


def write_plots(report: Report, folder: Path | str) -> tuple[Path, ...]:
    """Write every plot of a report as ``NAME.svg`` and ``NAME.pdf``.

    ::

        write_plots(load_report("runs/a"), "paper/plots")

    Returns:
        The written files.

    Raises:
        SettingsError: ``folder`` is a file.
        WritingError: A file could not be written; it is unchanged.
    """
    return save_plots(plots_of(report), Path(folder), made_of=provenance_words(report.provenance))


def save_plots(plots: Sequence[Plot], folder: Path, *, made_of: str = "") -> tuple[Path, ...]:
    """Write plots as ``write_plots`` does; ``made_of`` says of what, in the files' metadata."""
    folder = _folder(folder)
    return tuple(file for plot in plots for file in _save_plot(plot, folder, made_of))


def _save_plot(plot: Plot, folder: Path, made_of: str) -> tuple[Path, ...]:
    """Draw a plot into ``NAME.svg`` and ``NAME.pdf``, whose fonts are embedded; the same plot gives the same files."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    files = []
    fonts = [font for font in _FONTS if font in installed]
    with (
        plot_settings(plot.name),
        mpl.rc_context({"font.family": fonts, "pdf.fonttype": 42}),
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        figure = Figure(figsize=plot.size_inches, layout="constrained")
        plot.draw(figure)
        for kind, (no_date, described) in _METADATA.items():
            file, metadata = folder / f"{plot.name}.{kind}", {no_date: None, described: made_of or None}
            drawn = io.BytesIO()
            figure.savefig(drawn, format=kind, metadata=metadata)
            content = drawn.getvalue()
            with replacing(file) as out:
                out.write(printable(content.decode()).encode() if kind == "svg" else content)
            files.append(file)
    if any("Glyph" in str(each.message) for each in said):
        logger.warning("%s has letters that no installed font holds: install Noto Sans CJK for Chinese.", files[-1])
    return tuple(files)


def _folder(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        raise SettingsError(f"{path} is a file. Name a folder.")
    with refusing_full_disk(path):
        path.mkdir(parents=True, exist_ok=True)
    return path
