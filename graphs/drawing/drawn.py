"""What draws itself: as text, as a graph, as a page, and in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ..tree.nodes import QueryNode
from .dot import Direction, draw_dot
from .html import Transcripts, draw_html, notebook_frame
from .marks import Marks
from .svg import render_svg
from .text import draw_text

if TYPE_CHECKING:
    import graphviz


class Drawn(ABC):
    """Draws itself as text and as an HTML page, which a notebook shows in a frame."""

    drawn_as: ClassVar[str]
    """Title of its pictures and frames, such as "search tree"."""

    @abstractmethod
    def to_text(self, *, width: int = 100) -> str:
        """Draw it for a terminal of ``width`` columns."""

    @abstractmethod
    def to_html(self) -> str:
        """Draw it as one self-contained HTML page."""

    def _repr_html_(self) -> str:
        """Show the page of ``to_html`` in a frame of a notebook, offline; a viewer that drops frames shows the text."""
        return notebook_frame(self.to_html(), title=self.drawn_as, text=self.to_text())

    def __str__(self) -> str:
        return self.to_text()


class DrawnGraph(Drawn):
    """Draws itself as a picture, too."""

    @abstractmethod
    def to_dot(self) -> str:
        """Draw it as Graphviz DOT text; needs no Graphviz."""

    def to_graphviz(self) -> graphviz.Source:
        """Draw it as a ``graphviz.Source``: a notebook shows it like ``to_svg``, its ``render`` needs ``dot``."""
        return _source(self.to_dot(), title=self.drawn_as)

    def to_svg(self) -> str:
        """Draw it as a stand-alone SVG picture, dark where the viewer prefers that.

        Runs ``dot`` or ``graphviz-pure``; 1,000 boxes take 1 to 3 s. The tooltip of each box is its full text.

        Raises:
            DependencyError: Neither is installed, or it fails.
        """
        return render_svg(self.to_dot(), title=self.drawn_as)

    @abstractmethod
    def to_html(self, *, picture: bool | None = None) -> str:
        """Draw it as one self-contained HTML page; ``picture`` adds the SVG, None if it is small and can be drawn.

        Raises:
            DependencyError: ``picture`` is True, and no renderer is installed or it fails.
        """


class TreeToDraw(NamedTuple):
    """A search tree, and what its drawings say besides."""

    root: QueryNode
    marks: Marks
    fingerprint: Mapping[str, str]
    """How it was made, by name."""
    transcripts: Callable[[], Transcripts]
    """Reads what was recorded of its calls, for a page."""


class DrawnTree(DrawnGraph):
    """A search tree with marks on its chunks."""

    drawn_as = "search tree"

    @abstractmethod
    def _to_draw(self) -> TreeToDraw:
        """Return what is drawn."""

    def to_text(self, *, width: int = 100, numbers: bool = False) -> str:
        """Draw the tree for a terminal of ``width`` columns; with ``numbers``, nodes stand with their names.

        The name of a query is its number, such as 2; that of its first chunk is 2#1.
        """
        root, marks, *_ = self._to_draw()
        return draw_text(root, width=width, marks=replace(marks, numbers=numbers or marks.numbers))

    def to_dot(self, *, direction: Direction = "right", fold: bool = True) -> str:
        """Draw the tree as Graphviz DOT text; needs no Graphviz.

        Args:
            direction: Where it grows: "right", or "down" for a narrow column.
            fold: Whether the chunks of a query that do not help share one box.
        """
        root, marks, *_ = self._to_draw()
        return draw_dot(root, direction=direction, fold=fold, marks=marks)

    def to_graphviz(self, *, direction: Direction = "right", fold: bool = True) -> graphviz.Source:
        """Draw the tree as a ``graphviz.Source``: a notebook shows it like ``to_svg``, its ``render`` needs ``dot``.

        Options as for ``to_dot``.
        """
        return _source(self.to_dot(direction=direction, fold=fold), title=self.drawn_as)

    def to_svg(self, *, direction: Direction = "right", fold: bool = True) -> str:
        """Draw the tree as a stand-alone SVG picture, dark where the viewer prefers that; options as for ``to_dot``.

        Runs ``dot`` or ``graphviz-pure``; 1,000 nodes take 1 to 3 s.

        Raises:
            DependencyError: Neither is installed, or it fails.
        """
        return render_svg(self.to_dot(direction=direction, fold=fold), title=self.drawn_as)

    def to_html(self, *, picture: bool | None = None) -> str:
        """Draw the tree as one self-contained, searchable HTML page.

        ``picture`` adds the SVG; None adds it to trees of up to 80 nodes if it can be drawn.

        Raises:
            DependencyError: ``picture`` is True, and no renderer is installed or it fails.
        """
        root, marks, fingerprint, transcripts = self._to_draw()
        return draw_html(root, fingerprint, self.to_svg, picture=picture, transcripts=transcripts(), marks=marks)


def _source(dot: str, *, title: str) -> graphviz.Source:
    from .source import dot_source  # noqa: PLC0415 - graphviz takes 50 ms to import

    return dot_source(dot, title=title)
