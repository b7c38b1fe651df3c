"""``judgetree tree``: shows or draws the search tree of an earlier run."""

from __future__ import annotations

from typing import Annotated

import typer

from ..terminal.terminal import busy, width, write_result
from .options import DirectionName, DotFile, JsonFile, SvgFile


def tree(
    thread_id: Annotated[str, typer.Argument(metavar="THREAD_ID", help="A thread, or one of its sub-runs.")],
    svg: SvgFile = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Searchable page.")] = None,
    json: JsonFile = None,
    dot: DotFile = None,
    graphml: Annotated[str | None, typer.Option(metavar="FILE", help="For graph programs.")] = None,
    direction: Annotated[DirectionName, typer.Option(help="Where the picture grows.")] = "right",
    fold: Annotated[bool, typer.Option(help="Draw the chunks of a query that do not help as one box.")] = True,
) -> None:
    """Show the search tree of a thread: as text, or in files."""
    with busy("starting"):
        from ...modules.settings import load_settings
        from ..terminal.files import TreeFiles
        from ..terminal.saved import read_saved_tree

    look = {"direction": direction, "fold": fold}
    files = TreeFiles.named(svg=svg, html=html, json=json, dot=dot, graphml=graphml, look=look)
    files.check(stdout_is_free=True)
    saved = read_saved_tree(load_settings(), thread_id)
    if files.targets:
        files.write(saved)
    else:
        write_result(saved.to_text(width=width()))
