"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import judgetree

project = "judgetree"
author = "the judgetree authors"
copyright = "the judgetree authors, Apache-2.0"
release = version = judgetree.__version__

extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"judgetree {release}"
html_show_sphinx = False

myst_heading_anchors = 3
myst_fence_as_directive = {"mermaid"}


class Mermaid(SphinxDirective):
    """``mermaid``: the source of a diagram, which GitHub draws."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The source as a literal block."""
        text = "\n".join(self.content)
        return [nodes.literal_block(text, text, language="text")]


def _leave_out_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to files outside of ``docs/``, which GitHub follows, become their text."""
    out = re.escape("../" * (name.count("/") + 1))
    source[0] = re.sub(rf"\[([^\]]+)\]\({out}[^)]+\)", r"\1", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Let Sphinx read what is written for GitHub."""
    app.add_directive("mermaid", Mermaid)
    app.connect("source-read", _leave_out_links)
    return {"parallel_read_safe": True}
