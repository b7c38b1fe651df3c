"""``judgetree eval fetch``: its declaration; what it does is imported only when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def fetch(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Such as hotpotqa; without, what there is.")
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Where to; the folder datasets of the home.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="A mirror of its file or archive.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Get a public data set: tells licence, size and citation, downloads and reads it, or says what to do by hand."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from .eval_fetch import run_fetch, run_list

    raise typer.Exit(run_list(as_json=as_json) if name is None else run_fetch(name, out, url=url, as_json=as_json))
