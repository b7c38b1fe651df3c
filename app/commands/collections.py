"""``judgetree collections``: lists the indexed collections, and renames one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..stores.collections import CollectionSummary, read_collections
from ..terminal.home import home_in_use
from ..terminal.terminal import Cell, busy, say, write_json, write_rows
from .options import Json


def collections(
    rename: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="OLD NEW", help="Give a collection another name; its graphs are to be made again."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the collections that can be asked.

    Examples:
        judgetree collections
        judgetree collections --rename handbook handbook_2026
    """
    with busy():
        from ...modules.settings import load_settings

        settings = load_settings()
        if rename is not None:
            from ...modules.index.factory import rename as give_name

            give_name(*rename, settings)
        summaries = list(read_collections(settings))
    if as_json:
        write_json([asdict(summary) for summary in summaries])
    elif summaries:
        write_rows(_row(summary) for summary in summaries)
    else:
        say(f"No collections yet. {home_in_use(settings)}. Make one: judgetree index FOLDER -c NAME")


def _row(collection: CollectionSummary) -> tuple[Cell, ...]:
    from ...graphs.drawing.words import count_of

    if collection.problem:
        return ((collection.name, ""), ("", ""), ("", ""), (collection.problem, "yellow"))
    return (
        (collection.name, "bold"),
        (count_of(collection.chunks, "chunk"), ""),
        (count_of(collection.files, "file"), ""),
        (f"{', '.join(collection.embedders)} · {collection.analyzer} · {collection.chunk_size}", "dim"),
    )
