"""Plots, and Matplotlib figures as SVG elements of an HTML page, in its font and colours, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from ...modules.storage.texts import html_text, printable

COLOURS = ("#0f7fc4", "#d9650b", "#0b9c78", "#c2639b", "#b98a00", "#7a6fd0", "#5c8f22", "#a4574a")
"""Colours by index of the system, distinct for the colour-blind and visible on white and black."""

_SVG = "http://www.w3.org/2000/svg"
_LINK = "http://www.w3.org/1999/xlink"
_INK = "#010203"
"""Placeholder for the page's text colour; no plot may use it for anything else."""
_FONT_SIZE = re.compile(r"(?<![\d.])([\d.]++)px")


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One plot of the page."""

    name: str
    title: str
    caption: str
    """Explanation of how to read it."""
    alt: str
    """Its content in words."""
    draw: Callable[[Figure], None]
    """Draws it on a figure of ``size_inches``."""
    size_inches: tuple[float, float] = (6.4, 3.4)
    """Width and height."""

    @property
    def svg(self) -> str:
        """The plot as an SVG element of the page; see ``inline_svg``."""
        return draw_inline_svg(self.draw, name=self.name, alt=self.alt, size_inches=self.size_inches)


def figures_html(*plots: Plot) -> str:
    """Build the figures of plots, with their captions."""
    figures = "".join(
        f'<figure id="plot-{plot.name}"><h3>{html_text(plot.title)}</h3>{plot.svg}'
        f"<figcaption>{html_text(plot.caption)}</figcaption></figure>"
        for plot in plots
    )
    return f'<div class="plots">{figures}</div>' if figures else ""


def draw_inline_svg(
    draw: Callable[[Figure], None], *, name: str, alt: str, size_inches: tuple[float, float] = (6.4, 3.4)
) -> str:
    """Render what ``draw`` puts on a figure as an ``<svg>`` element; the same drawing gives the same element.

    Text stays text in the page's font. There are no style elements or attributes, which a strict
    Content-Security-Policy would block.

    Args:
        draw: Draws on the given figure.
        name: Unique in the page; it keeps the ids of its figures apart.
        alt: Description in words.
        size_inches: Width and height; the element scales.
    """
    out = io.StringIO()
    # Artists read the rcParams while they are drawn, so the settings must be global meanwhile.
    with plot_settings(name), warnings.catch_warnings():
        # The page's fonts have glyphs that Matplotlib's font lacks; its estimate of their width is good enough.
        warnings.filterwarnings("ignore", message=r"Glyph \d+")
        figure = Figure(figsize=size_inches, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _inline(out.getvalue(), alt)


def plot_settings(name: str) -> AbstractContextManager[None]:
    """Set Matplotlib's options for plots inside the block; ``name`` makes the ids of SVG the same."""
    return mpl.rc_context(
        {
            "svg.hashsalt": name,
            "svg.fonttype": "none",  # text stays text
            "font.size": 10,
            "text.parse_math": False,  # names may hold dollar signs
            "text.color": _INK,
            "axes.labelcolor": _INK,
            "axes.edgecolor": _INK,
            "xtick.color": _INK,
            "ytick.color": _INK,
            "grid.color": _INK,
            "grid.alpha": 0.15,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "legend.frameon": False,
        }
    )


def _inline(svg: str, alt: str) -> str:
    root = ElementTree.fromstring(printable(svg))  # names may hold what XML forbids
    for element in list(root.iter()):
        for child in [child for child in element if child.tag in (f"{{{_SVG}}}style", f"{{{_SVG}}}metadata")]:
            element.remove(child)
        _presentation_attributes(element)
    _drop_unused_ids(root)
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    # Replaces the removed style element.
    root.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt", "role": "img"}
    title = ElementTree.Element(f"{{{_SVG}}}title")
    title.text = alt
    root.insert(0, title)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _LINK)
    return ElementTree.tostring(root, encoding="unicode").replace(_INK, "currentColor")


def _presentation_attributes(element: ElementTree.Element) -> None:
    """Replace the style attribute by presentation attributes; of fonts only the size is kept."""
    for declaration in element.attrib.pop("style", "").split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name in ("font", "font-size"):
            size = _FONT_SIZE.search(value)
            name, value = "font-size", size[1] if size else ""
        if value and name != "font-family":
            element.set(name, value)


def _drop_unused_ids(root: ElementTree.Element) -> None:
    """Drop ids without a reference: Matplotlib's (figure_1, text_1) repeat in each figure."""
    values = [value for element in root.iter() for name, value in element.attrib.items() if name != "id"]
    used = {name for value in values for name in re.findall(r"#([\w.-]+)", value)}
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)


def colour_of(place: int) -> str:
    """Return the colour of the system at a place."""
    return COLOURS[place % len(COLOURS)]
