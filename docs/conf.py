"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import judgetree

project = "judgetree"
author = "the judgetree authors"
copyright = "the judgetree authors, Apache-2.0"
release = version = judgetree.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference"]
html_theme = "furo"
html_title = f"judgetree {release}"
html_show_sphinx = False

myst_heading_anchors = 3
myst_fence_as_directive = {"mermaid"}

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False

nitpicky = True
nitpick_ignore_regex = [
    # Names of other libraries, whose documentation is not fetched: the build needs no network.
    (r"py:.*", r"(?!judgetree\.).*"),
    # Types that a signature names and api.md leaves to the code.
    (r"py:.*", r"judgetree\.(modules|graphs|evaluation)\..*"),
]

# The built-in ``type`` in a signature matches attributes of that name.
suppress_warnings = ["ref.python"]
