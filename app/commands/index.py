"""``judgetree index``: adds files to a collection, updates and removes them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...modules.errors import SettingsError
from ..terminal.exit_status import FAILED
from ..terminal.terminal import busy, progress_bar, resumable, say, write_json, write_result
from .options import DryRun, Json, Prompts, RayAddress, ray_address

if TYPE_CHECKING:
    from ...modules.embedding.embedder import Embedder
    from ...modules.index.index import Index
    from ...modules.index.plan import IndexReport
    from ...modules.index.schema import IndexParams
    from ...modules.progress import StageProgress
    from ..terminal.collection_update import CollectionUpdate
    from ..terminal.graph_making import MadeGraph


def index(  # noqa: PLR0913 - one parameter an option
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Files or folders."),
    ] = None,
    *,
    collection: Annotated[str, typer.Option("--collection", "-c", metavar="NAME", help="Collection to fill.")],
    types: Annotated[
        str | None, typer.Option("--type", metavar="pdf,md", rich_help_panel="Files", help="File types; default: all.")
    ] = None,
    chunk_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel="Chunks and vectors",
            help="Characters in a chunk; default: the collection's, 700 in a new one.",
        ),
    ] = None,
    chunk_overlap: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel="Chunks and vectors",
            help="Characters that neighbours share; default: the collection's, 50 in a new one.",
        ),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            rich_help_panel="Taking files out",
            help="Remove files that were under PATH and are gone; files of other folders stay.",
        ),
    ] = False,
    prune_all: Annotated[
        bool,
        typer.Option(
            "--prune-all",
            rich_help_panel="Taking files out",
            help="Remove all that is not under PATH, other folders and uploads too; asks, or --yes.",
        ),
    ] = False,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            rich_help_panel="Taking files out",
            help="Remove a file from the collection; may be repeated.",
        ),
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", rich_help_panel="Files", help="Follow links that leave the folder, too.")
    ] = False,
    max_file_mb: Annotated[
        float,
        typer.Option(
            min=0, metavar="MB", rich_help_panel="Files", help="Skip files that are larger, or that hold more text."
        ),
    ] = 200.0,
    max_file_s: Annotated[
        float,
        typer.Option(
            min=0.1, metavar="SECONDS", rich_help_panel="Files", help="Skip files that take longer to be read."
        ),
    ] = 60.0,
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            rich_help_panel="Files",
            help="Text before the path in each source; default: the folder's own in this collection.",
        ),
    ] = None,
    index_params: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            rich_help_panel="Chunks and vectors",
            help="Index of each vector field; those that differ are built again. Such as "
            '\'{"dense": {"index_type": "HNSW", "metric_type": "COSINE", "params": {"M": 32}}}\'.',
        ),
    ] = None,
    rebuild_index: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            rich_help_panel="Chunks and vectors",
            help="Drop and build the index of a vector field; repeatable.",
        ),
    ] = None,
    graph: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            rich_help_panel="Graphs",
            help="Make a graph of the collection: links, of titles named in its text, entities, of names that passages "
            "share, or triples, of facts that a model draws from each passage once its cost is confirmed; repeatable.",
        ),
    ] = None,
    graph_llm: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", rich_help_panel="Graphs", help="Model that draws triples; default: JUDGETREE_LLM."
        ),
    ] = None,
    prompts: Prompts = None,
    max_passages: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", rich_help_panel="Graphs", help="Draw triples from at most N passages now; default: all."
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="USD", rich_help_panel="Graphs", help="Most US dollars for triples now; default: no limit."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Remove files, and pay the model, without asking first.")
    ] = False,
    dry_run: DryRun = False,
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait for another writer.")
    ] = 600.0,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel="Chunks and vectors",
            help="Embed in N processes, a core each (extra ray); default: this one.",
        ),
    ] = None,
    ray: RayAddress = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", rich_help_panel="Files", help="Exit with 1 if a file was skipped, or a passage got no triples."
        ),
    ] = False,
    list_skipped: Annotated[
        bool, typer.Option("--list-skipped", rich_help_panel="Files", help="Name all skipped files, not ten.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Index files into a collection; a second run embeds only what changed.

    Examples:
        judgetree index handbook/ -c handbook
        judgetree index handbook/ notes.md -c handbook --prune
        judgetree index -c handbook --remove notes.md --dry-run
    """
    with busy():
        from ...modules.index.factory import open_index
        from ...modules.index.file_parsers import LoadLimits
        from ...modules.index.writer_lock import LockOptions
        from ...modules.prompts.reading import load_prompts
        from ...modules.settings import load_settings
        from ...modules.structure.building import check_kind
        from ..terminal.collection_update import CollectionUpdate, older_graphs

    _check_something_to_do(paths, remove, rebuild_index, index_params, graph, is_pruning=prune or prune_all)
    kinds = list(dict.fromkeys(graph or ()))
    for kind in kinds:
        check_kind(kind)
    load_prompts(prompts)  # refused before anything is embedded
    started, settings = time.monotonic(), load_settings()
    address = ray_address(workers, ray)
    opening = partial(
        open_index,
        collection,
        settings,
        data_path=paths[0] if paths else None,
        file_type_wanted=types.replace(",", " ").split() if types is not None else None,
        follow_links=follow_links,
        limits=LoadLimits(file_bytes=int(max_file_mb * 1e6), seconds=max_file_s),
        source_prefix=prefix,
        index_params=parsed_index_params(index_params),
        lock=LockOptions(wait_s=wait_s),
    )
    gone: Mapping[str, int] = {}
    if prune or prune_all or remove:
        with busy("comparing"), opening() as opened:
            gone = opened.gone_files(also=(paths or [])[1:], everywhere=prune_all) if prune or prune_all else {}
            named = opened.sizes_of(remove or ())
        _confirm(collection, {**gone, **named}, yes=yes, dry_run=dry_run, asks_scripts=prune_all)
    with (
        resumable(lambda: "Embeddings so far are kept"),
        progress_bar() as on_progress,
        opening(spread=None if workers is None else _spread_over(workers, address), on_progress=on_progress) as opened,
        _connected(address, workers, on_progress) if paths and workers and not dry_run else nullcontext(),
    ):
        sizes = (chunk_size, chunk_overlap)
        report = _report(opened, paths or (), remove or (), sizes=sizes, prune=gone, dry_run=dry_run)
        if dry_run:
            _write_dry_run(CollectionUpdate(collection=collection, report=report), as_json=as_json)
            return
        done = CollectionUpdate(
            collection=collection,
            report=report,
            indexes=opened.rebuild_indexes(*(rebuild_index or ())) if rebuild_index or index_params else {},
            embedders=opened.info().embedders,
            older_graphs=older_graphs(opened, settings.home, report, kinds),
        )
    if not as_json:  # before the graphs, one of which may fail
        _write_lines(done.lines(time.monotonic() - started, list_skipped=list_skipped))
    graphs: list[MadeGraph] = []
    try:
        for made in _made_graphs(
            collection,
            kinds,
            llm=graph_llm,
            prompts=prompts,
            max_passages=max_passages,
            max_cost_usd=max_cost,
            is_confirmed=yes,
            wait_s=wait_s,
        ):
            graphs.append(made)
            _write_lines([] if as_json else made.lines())
    finally:  # what was done before a graph failed is reported too
        if as_json and (done.report or done.indexes or graphs):
            write_json(done.to_document(graphs, seconds=time.monotonic() - started))
    if strict and ((done.report and done.report.skipped) or any(each.failed for each in graphs)):
        raise typer.Exit(FAILED)


def _confirm(collection: str, files: Mapping[str, int], *, yes: bool, dry_run: bool, asks_scripts: bool) -> None:
    """Say which files are about to be taken out, and end the command unless that is confirmed.

    Scripts have always called --prune and --remove, which name what they take out, without a confirmation.

    Raises:
        SettingsError: It is to be confirmed, and standard input is no terminal.
        Exit: It was refused.
    """
    from ..terminal.deleting import files_text, may_delete

    if not files:
        return
    what, question = files_text(collection, files), "Take them out of the collection?"
    if not may_delete(what, question, yes=yes, dry_run=dry_run, asks_scripts=asks_scripts) and not dry_run:
        raise typer.Exit


def _check_something_to_do(paths: Sequence[Path] | None, *others: str | Sequence[str] | None, is_pruning: bool) -> None:
    if is_pruning and not paths:
        raise SettingsError("--prune and --prune-all compare a collection with files: give the PATH of a folder too.")
    if not any((paths, *others)):
        raise SettingsError(
            "Give a file or folder to index, --remove SOURCE, --rebuild-index FIELD, --index-params or --graph KIND."
        )


def _report(
    opened: Index,
    paths: Sequence[Path],
    remove: Sequence[str],
    *,
    sizes: tuple[int | None, int | None],
    prune: Mapping[str, int],
    dry_run: bool,
) -> IndexReport | None:
    """Update the files of a collection, then remove some; None if neither is asked for."""
    report: IndexReport | None = None
    if paths:
        known = opened.chunk_sizes()
        size, overlap = (
            old if new is None else new for old, new in zip((known.size, known.overlap), sizes, strict=True)
        )
        report = opened.get_index_done(size, overlap, prune=prune, also=paths[1:], dry_run=dry_run)
    if not remove:
        return report
    rest = opened.remove_files(*remove, dry_run=dry_run)
    return replace(report, removed=report.removed + rest.removed, chunks=rest.chunks) if report else rest


def _write_dry_run(update: CollectionUpdate, *, as_json: bool) -> None:
    if as_json:
        write_json(update.to_document((), seconds=0.0) | {"dry_run": True})
        return
    _write_lines(update.lines(0.0, list_skipped=True))
    say("Dry run: nothing was changed. Graphs and indexes of vectors are not looked at.")


def _write_lines(lines: Iterable[str]) -> None:
    if text := "\n".join(lines):
        write_result(text)


def _made_graphs(collection: str, kinds: Sequence[str], **options: Any) -> Iterator[MadeGraph]:
    """Make graphs, the options those of ``ModelOptions``; without any, no client of a model is loaded."""
    if kinds:
        with busy():
            from ..terminal.graph_making import ModelOptions, make_graphs

        yield from make_graphs(collection, kinds, ModelOptions(**options))


def _spread_over(workers: int, address: str) -> Callable[[Embedder], Embedder]:
    from ...modules.embedding.ray_embedder import RayEmbedder

    return partial(RayEmbedder, workers=workers, address=address)


@contextmanager
def _connected(address: str, workers: int, on_progress: StageProgress) -> Iterator[None]:
    """Reach a Ray before a file is read, so that one that is not there is refused at once.

    One of this machine, which takes ten seconds, is started once there is something to embed.

    Raises:
        SettingsError: Ray cannot be reached.
        DependencyError: The extra ``ray`` is not installed.
    """
    from ...modules.cluster import HERE, check_installed, connected

    if address == HERE:
        check_installed()
        yield
        return
    on_progress(0, workers, "workers")
    with connected(address, workers=workers):
        on_progress(workers, workers, "workers")
        yield


def parsed_index_params(text: str | None) -> dict[str, IndexParams] | None:
    """Return index parameters by vector field from JSON.

    Raises:
        SettingsError: It is no JSON object of objects.
    """
    if text is None:
        return None
    with suppress(ValueError, RecursionError):
        given = json.loads(text)
        if isinstance(given, dict) and all(isinstance(params, dict) for params in given.values()):
            return given
    raise SettingsError(
        f"--index-params {text[:100]!r} is no JSON object of vector fields. Give one such as "
        '{"dense": {"index_type": "HNSW", "metric_type": "COSINE", "params": {"M": 32}}}.'
    )
