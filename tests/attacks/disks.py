"""What judgetree writes for people, each written once into a folder; one file comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from judgetree.app.terminal.files import TreeFiles
from judgetree.evaluation.papers.files import save_plots, write_tables
from judgetree.evaluation.question_files.kept_questions import keep_questions
from judgetree.evaluation.reports.inline_svg import Plot
from judgetree.evaluation.tables.table import Table
from judgetree.modules.prebuilt.files import YAML_NAME
from judgetree.modules.storage.atomic import write_atomic
from tests.random_trees import random_tree

Writer = Callable[[Path], object]
"""Writes into a folder."""


def _tree(form: str) -> Writer:
    return lambda folder: TreeFiles.named(**{form: str(folder / f"tree.{form}")}).write(random_tree(3))


def _draw(figure: Figure) -> None:
    axes = figure.subplots()
    axes.plot(range(1_000), [number**2 % 97 for number in range(1_000)])


_PLOT = Plot(name="plot", title="", caption="", alt="", draw=_draw)
_TABLE = Table.of(("a", "b"), [["x" * 5_000, "y"]], texts=2, name="systems", caption="c")

WRITERS: Mapping[str, tuple[Writer, str]] = {
    "tree-html": (_tree("html"), "tree.html"),
    "tree-json": (_tree("json"), "tree.json"),
    "tree-dot": (_tree("dot"), "tree.dot"),
    "tree-graphml": (_tree("graphml"), "tree.graphml"),
    "plots": (lambda folder: save_plots([_PLOT], folder), "plot.svg"),
    "tables": (lambda folder: write_tables([_TABLE], folder / "tables.tex"), "tables.tex"),
    "kept-questions": (
        lambda folder: keep_questions(["Why? " * 500 + str(number) for number in range(10)], folder),
        "questions-*.jsonl",
    ),
    "any-file": (lambda folder: write_atomic(folder / YAML_NAME, "x" * 50_000), YAML_NAME),
}
"""Name to what writes, and the name of its (first) file."""
