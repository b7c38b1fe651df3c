"""``judgetree index``: adds files to a collection, updates and removes them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...modules.errors import SettingsError
from ..terminal.exit_status import FAILED
from ..terminal.terminal import busy, progress_bar, write_json, write_result
from .options import Json

if TYPE_CHECKING:
    from ...modules.index.plan import IndexReport

_NAMES_SHOWN = 10


def index(  # noqa: PLR0913 - one parameter an option
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Files or folders."),
    ] = None,
    *,
    collection: Annotated[str, typer.Option("--collection", "-c", metavar="NAME", help="Collection to fill.")],
    types: Annotated[str | None, typer.Option("--type", metavar="pdf,md", help="File types; default: all.")] = None,
    chunk_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Characters in a chunk; default: as before, at first 700.")
    ] = None,
    chunk_overlap: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Characters shared; default: as before, at first 50.")
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Take out files that are gone.")] = False,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="SOURCE", help="Take a file out of the collection; repeatable.")
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow links that leave the folder, too.")
    ] = False,
    max_file_mb: Annotated[
        float, typer.Option(min=0, metavar="MB", help="Skip files that are larger, or that hold more text.")
    ] = 200.0,
    max_file_s: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Skip files that take longer to be read.")
    ] = 60.0,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What sources begin with; default: as the collection remembers.")
    ] = None,
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait for another writer.")
    ] = 600.0,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a file was skipped.")] = False,
    as_json: Json = False,
) -> None:
    """Bring files into a collection; only what changed costs anything."""
    with busy("starting"):
        from ...modules.index.factory import open_index
        from ...modules.index.file_parsers import LoadLimits
        from ...modules.index.writer_lock import LockOptions
        from ...modules.settings import load_settings

    if not paths and not remove:
        raise SettingsError("Give a file or folder to index, or --remove SOURCE.")
    started = time.monotonic()
    with (
        progress_bar() as on_progress,
        open_index(
            collection,
            load_settings(),
            data_path=paths[0] if paths else None,
            file_type_wanted=types.replace(",", " ").split() if types is not None else None,
            follow_links=follow_links,
            limits=LoadLimits(file_bytes=int(max_file_mb * 1e6), seconds=max_file_s),
            source_prefix=prefix,
            lock=LockOptions(wait_s=wait_s),
            on_progress=on_progress,
        ) as opened,
    ):
        if paths:
            known = opened.chunk_sizes()
            size = known.size if chunk_size is None else chunk_size
            overlap = known.overlap if chunk_overlap is None else chunk_overlap
            report = opened.get_index_done(size, overlap, prune=prune, also=paths[1:])
        if remove:
            rest = opened.remove_files(*remove)
            report = replace(report, removed=report.removed + rest.removed, chunks=rest.chunks) if paths else rest
        embedders = opened.info().embedders
    seconds = time.monotonic() - started
    if as_json:
        write_json(
            {"collection": collection, **asdict(report), "embedders": dict(embedders), "seconds": round(seconds, 2)}
        )
    else:
        write_result("\n".join(_summary(collection, report, embedders, seconds)))
    if strict and report.skipped:
        raise typer.Exit(FAILED)


def _summary(collection: str, report: IndexReport, embedders: Mapping[str, str], seconds: float) -> Iterator[str]:
    from ...graphs.drawing.words import count_of

    names = ", ".join(sorted(set(embedders.values())))
    yield f"{collection}: {count_of(report.chunks, 'chunk')} ({report.embedded:,} embedded now), embedder {names}"
    yield (
        f"files: {len(report.added)} new, {len(report.changed)} changed, {report.unchanged} unchanged, "
        f"{len(report.removed)} removed, {len(report.skipped)} skipped, {report.ignored} of other types; "
        f"{seconds:.1f} s"
    )
    for file in report.skipped[:_NAMES_SHOWN]:
        yield f"skipped {file.source}: {file.reason}"
    if len(report.skipped) > _NAMES_SHOWN:
        yield f"and {len(report.skipped) - _NAMES_SHOWN} more; --json names all"
