"""Plots as files: SVG for screens and slides, PDF for LaTeX."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.figure import Figure

from ...modules.disk import refusing_full_disk
from ..reports.inline_svg import plot_settings
from ..reports.plots import Plot

logger = logging.getLogger(__name__)

_FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "SimHei")
"""Fonts in the order in which a glyph is looked for; those that are not installed are left out."""
_NO_DATES = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save_plot(plot: Plot, folder: Path) -> tuple[Path, ...]:
    """Draw a plot into ``NAME.svg`` and ``NAME.pdf``, whose fonts are embedded; the same plot gives the same files.

    Raises:
        WritingError: A file cannot be written.
    """
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
        for kind, metadata in _NO_DATES.items():
            file = folder / f"{plot.name}.{kind}"
            with refusing_full_disk(file):
                figure.savefig(file, format=kind, metadata=metadata)
            files.append(file)
    if any("Glyph" in str(each.message) for each in said):
        logger.warning("%s has letters that no installed font holds: install Noto Sans CJK for Chinese.", files[-1])
    return tuple(files)
