"""``judgetree tree``: shows or draws the search tree of an earlier run."""

from __future__ import annotations

from typing import Annotated

import typer

from ...terminal.terminal import busy, say, width, write_result
from ..options import DirectionName, DotFile, JsonFile, SvgFile


def tree(  # noqa: PLR0913 - one parameter an option
    thread_id: Annotated[str, typer.Argument(metavar="THREAD_ID", help="A thread, or one of its sub-runs.")],
    *,
    svg: SvgFile = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Searchable page.")] = None,
    json: JsonFile = None,
    dot: DotFile = None,
    graphml: Annotated[str | None, typer.Option(metavar="FILE", help="GraphML, for programs that draw graphs.")] = None,
    direction: Annotated[DirectionName, typer.Option(help="Where the picture grows.")] = "right",
    fold: Annotated[bool, typer.Option(help="Draw the chunks of a query that do not help as one box.")] = True,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Show the names of queries and chunks, such as 2#1, for `fork --node`.")
    ] = False,
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Send it as spans of OpenTelemetry to OTEL_EXPORTER_OTLP_ENDPOINT.")
    ] = False,
) -> None:
    """Show the search tree of a thread: as text, in files, or as a trace of OpenTelemetry.

    Examples:
        judgetree tree THREAD_ID
        judgetree tree THREAD_ID --html tree.html --svg tree.svg --direction down
    """
    with busy():
        from ....modules.settings import load_settings
        from ...terminal.files import TreeFiles
        from ...terminal.saved import read_saved_tree

    look = {"direction": direction, "fold": fold}
    files = TreeFiles.named(svg=svg, html=html, json=json, dot=dot, graphml=graphml, look=look)
    files.check(stdout_is_free=True)
    saved = read_saved_tree(load_settings(), thread_id)
    if otlp:
        from ....graphs.rag.telemetry import send_tree

        say(f"{send_tree(saved)} spans were sent.")
    if files.targets:
        files.write(saved)
    elif not otlp:
        write_result(saved.to_text(width=width(), numbers=numbers))
