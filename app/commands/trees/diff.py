"""``judgetree diff``: compares two search trees, or two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....modules.errors import SettingsError, needs_extra
from ...terminal.terminal import busy, say, width, write_json, write_result
from ..options import Json

if TYPE_CHECKING:
    from ....evaluation.run_diff import RunDiff
    from ....graphs.rag.search_tree import SearchTree
    from ....graphs.rag.tree_diff import TreeDiff

_SIDE = "A thread, a tree as a JSON file, or a run directory."


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    second: Annotated[str, typer.Argument(metavar="B", help=_SIDE)],
    *,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Side by side, as a page.")] = None,
    question: Annotated[str | None, typer.Option(metavar="ID", help="Of two runs, the trees of this question.")] = None,
    systems: Annotated[
        str | None, typer.Option(metavar="NAME[,NAME]", help="Of two runs, the system of both, or that of each.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two search trees: where they part, verdicts, chunks, answers, costs; or two runs, with exact match.

    Examples:
        judgetree diff THREAD_ID OTHER_THREAD_ID
        judgetree diff runs/first runs/second
    """
    with busy():
        from ....modules.storage.atomic import write_atomic
        from ...terminal.files import check_writable

    if html is not None:
        check_writable(Path(html), option="--html")
    are_runs = [Path(side).is_dir() for side in (first, second)]
    if any(are_runs) and not all(are_runs):
        raise SettingsError(f"{first} and {second}: one is a run directory, the other is none. Give two of a kind.")
    if not all(are_runs) and (question or systems):
        raise SettingsError("--question and --systems are for two run directories. Leave them out.")
    compared: TreeDiff | RunDiff = (
        _runs(first, second, question, systems) if all(are_runs) else _tree(first).diff(_tree(second))
    )
    if html is not None:
        write_atomic(Path(html), compared.to_html())
        say(f"wrote {html}", style="dim")
    if as_json:
        write_json(compared.to_document())
    elif html is None:
        write_result(_text(compared))


def _text(compared: TreeDiff | RunDiff) -> str:
    from ....graphs.rag.tree_diff import TreeDiff

    return compared.to_text(width=width()) if isinstance(compared, TreeDiff) else compared.to_text()


def _runs(first: str, second: str, question: str | None, systems: str | None) -> TreeDiff | RunDiff:
    with busy(), needs_extra("eval"):
        from ....evaluation.run_diff import diff_runs

    names = systems.split(",") if systems is not None else None
    with busy("comparing"):
        runs = diff_runs(first, second, systems=names)
    return runs if question is None else runs.tree(question)


def _tree(side: str) -> SearchTree:
    from ....graphs.rag.search_tree import SearchTree
    from ....modules.reading.regular_files import MAX_DATA_BYTES, read_named_text
    from ....modules.settings import load_settings
    from ...terminal.saved import read_saved_tree

    if Path(side).is_file():
        advice = "Give the JSON file of a search tree, or a thread."
        text = read_named_text(Path(side), what="the search tree", advice=advice, max_bytes=MAX_DATA_BYTES)
        return SearchTree.from_json(text)
    return read_saved_tree(load_settings(), side)
