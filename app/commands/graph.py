"""``judgetree graph``: shows what a question reaches in a graph of a collection."""

from __future__ import annotations

from typing import Annotated

import typer

from ..terminal.terminal import busy, width, write_result
from .options import DotFile, SvgFile

graph_app = typer.Typer(no_args_is_help=True)


@graph_app.command("show")
def show(  # noqa: PLR0913 - one parameter an option
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question to search for.")],
    *,
    collection: Annotated[str, typer.Option("--collection", "-c", metavar="NAME", help="Collection with the graph.")],
    graph: Annotated[str, typer.Option(metavar="KIND", help="links, entities or triples.")] = "triples",
    nodes: Annotated[int, typer.Option(min=2, max=500, metavar="N", help="Most passages and phrases to show.")] = 60,
    svg: SvgFile = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="One page with picture and texts.")] = None,
    dot: DotFile = None,
    graphml: Annotated[str | None, typer.Option(metavar="FILE", help="GraphML, for programs that draw graphs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show the passages and phrases that a question reaches in a graph: seeds, best passages, and what joins them.

    Examples:
        judgetree graph show "Which oil does KS-1 need?" -c handbook
    """
    with busy():
        from ...graphs.neighbourhood.shown import show_graph
        from ...modules.index.factory import open_index
        from ...modules.settings import load_settings
        from ..terminal.files import TreeFiles

    files = TreeFiles.named(svg=svg, html=html, dot=dot, graphml=graphml)
    files.check(stdout_is_free=not as_json)
    settings = load_settings()
    with busy("searching"), open_index(collection, settings) as index:
        shown = show_graph(question, index, settings.home, kind=graph, most_nodes=nodes)
    files.write(shown)
    if as_json:
        write_result(shown.to_json(indent=2))
    elif not files.targets:
        write_result(shown.to_text(width=width()))
