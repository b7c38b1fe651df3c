"""``judgetree index``: files into a collection, and files out of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...graphs.drawing.words import count_of
from ...modules.errors import SettingsError
from ...modules.index.chunking import CHUNK_OVERLAP, CHUNK_SIZE
from ...modules.index.factory import open_index
from ...modules.index.file_parsers import LoadLimits
from ...modules.index.index import Index
from ...modules.index.plan import IndexReport
from ...modules.index.writer_lock import WAIT_S, LockOptions
from ...modules.settings import Settings, load_settings
from ..terminal.exit_status import FAILED, OK
from ..terminal.terminal import progress_bar, write_json, write_result

_NAMES_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """What to bring into a collection, and how."""

    paths: tuple[Path, ...]
    """Sources are relative to the first folder of a collection; those of others begin with their folder's name."""
    collection: str
    types: tuple[str, ...] | None = None
    """Suffixes; None for all that can be read."""
    chunk_size: int | None = None
    """Characters; None takes the collection's, for a new one the default."""
    chunk_overlap: int | None = None
    prune: bool = False
    """Take out what stands under none of the paths any more."""
    remove: tuple[str, ...] = ()
    """Sources to take out."""
    follow_links: bool = False
    """Follow links that leave a folder."""
    limits: LoadLimits = field(default_factory=LoadLimits)
    """What reading one file may cost."""
    prefix: str | None = None
    """What sources of the first path begin with; None takes what the collection remembers."""
    wait_s: float = WAIT_S
    """How long to wait for another writer."""
    strict: bool = False
    """Fail when a file was skipped."""


@dataclass(frozen=True, kw_only=True)
class IndexOutcome:
    """What came of it."""

    report: IndexReport
    embedders: Mapping[str, str]
    """By vector field."""
    seconds: float

    def to_document(self, collection: str) -> dict[str, object]:
        """Plain data that ``json.dumps`` takes."""
        report = self.report
        return {
            "collection": collection,
            "added": list(report.added),
            "changed": list(report.changed),
            "removed": list(report.removed),
            "unchanged": report.unchanged,
            "skipped": [{"source": file.source, "reason": file.reason} for file in report.skipped],
            "ignored": report.ignored,
            "embedded": report.embedded,
            "chunks": report.chunks,
            "embedders": dict(self.embedders),
            "seconds": round(self.seconds, 2),
        }


def run_index(options: IndexOptions, *, as_json: bool) -> int:
    """Index, and tell what was done.

    Raises:
        UserError: Something to mend: a path, a type, sizes, the database, the embedder.
    """
    if not options.paths and not options.remove:
        raise SettingsError("Give a file or folder to index, or --remove SOURCE.")
    outcome = index_paths(options, load_settings())
    if as_json:
        write_json(outcome.to_document(options.collection))
    else:
        write_result("\n".join(_summary(outcome, options.collection)))
    return FAILED if options.strict and outcome.report.skipped else OK


def index_paths(options: IndexOptions, settings: Settings) -> IndexOutcome:
    """Bring the collection up to date, with a progress bar on standard error.

    Raises:
        UserError: See ``run_index``.
    """
    started = time.monotonic()
    with (
        progress_bar() as on_progress,
        open_index(
            options.collection,
            settings,
            data_path=options.paths[0] if options.paths else None,
            file_type_wanted=options.types,
            follow_links=options.follow_links,
            limits=options.limits,
            source_prefix=options.prefix,
            lock=LockOptions(wait_s=options.wait_s),
            on_progress=on_progress,
        ) as index,
    ):
        report = _sum_up(list(_reports(index, options)))
        return IndexOutcome(report=report, embedders=index.info().embedders, seconds=time.monotonic() - started)


def _reports(index: Index, options: IndexOptions) -> Iterator[IndexReport]:
    if options.paths:
        size, overlap = _chunk_sizes(index, options)
        yield index.get_index_done(size, overlap, prune=options.prune, also=options.paths[1:])
    if options.remove:
        removed = index.remove_files(*options.remove)
        yield replace(removed, unchanged=0) if options.paths else removed


def _chunk_sizes(index: Index, options: IndexOptions) -> tuple[int, int]:
    size, overlap = CHUNK_SIZE, CHUNK_OVERLAP
    if options.collection in index.collections():
        info = index.info()
        size, overlap = info.chunk_size, info.chunk_overlap
    return (
        size if options.chunk_size is None else options.chunk_size,
        overlap if options.chunk_overlap is None else options.chunk_overlap,
    )


def _sum_up(reports: Sequence[IndexReport]) -> IndexReport:
    """One report of several updates of a collection, the last of which knows how many chunks it holds."""
    return IndexReport(
        added=tuple(source for report in reports for source in report.added),
        changed=tuple(source for report in reports for source in report.changed),
        removed=tuple(source for report in reports for source in report.removed),
        unchanged=sum(report.unchanged for report in reports),
        skipped=tuple(file for report in reports for file in report.skipped),
        ignored=sum(report.ignored for report in reports),
        embedded=sum(report.embedded for report in reports),
        chunks=reports[-1].chunks,
    )


def _summary(outcome: IndexOutcome, collection: str) -> Iterator[str]:
    report = outcome.report
    embedders = ", ".join(sorted(set(outcome.embedders.values())))
    yield f"{collection}: {count_of(report.chunks, 'chunk')} ({report.embedded:,} embedded now), embedder {embedders}"
    yield (
        f"files: {len(report.added)} new, {len(report.changed)} changed, {report.unchanged} unchanged, "
        f"{len(report.removed)} removed, {len(report.skipped)} skipped, {report.ignored} of other types; "
        f"{outcome.seconds:.1f} s"
    )
    for file in report.skipped[:_NAMES_SHOWN]:
        yield f"skipped {file.source}: {file.reason}"
    if len(report.skipped) > _NAMES_SHOWN:
        yield f"and {len(report.skipped) - _NAMES_SHOWN} more; --json names all"
