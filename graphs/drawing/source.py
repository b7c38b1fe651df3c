"""DOT text as a ``graphviz.Source``: shown by notebooks, and saved, changed or rendered in any format of Graphviz."""

from __future__ import annotations

import graphviz

from .svg import render_svg


class DotSource(graphviz.Source):  # type: ignore[misc] # graphviz has no type marker
    """A ``graphviz.Source`` whose picture in a notebook needs no ``dot``: ``graphviz-pure`` will do."""

    title = "tree"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"image/svg+xml": render_svg(self.source, title=self.title)}


def dot_source(dot: str, *, title: str) -> graphviz.Source:
    """DOT text as a ``graphviz.Source``, which saves itself under its title."""
    source = DotSource(dot, filename=f"{title.replace(' ', '_')}.gv")
    source.title = title
    return source
