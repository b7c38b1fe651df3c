"""What ``judgetree index`` did to a collection, as lines and as a document."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ...graphs.drawing.words import count_of
from ...modules.index.index import Index
from ...modules.index.parsers.parsed import format_left_out
from ...modules.index.plan import IndexReport
from ...modules.index.schema import IndexParams
from ...modules.structure.building import KINDS
from ...modules.structure.graph_files import GraphFiles

if TYPE_CHECKING:
    from .graph_making import MadeGraph

_NAMES_SHOWN = 10
_TELLING_S = 0.5


@dataclass(frozen=True, kw_only=True)
class CollectionUpdate:
    """An update of a collection's files and indexes."""

    collection: str
    report: IndexReport | None
    """None where no file was read or removed."""
    indexes: Mapping[str, IndexParams] = field(default_factory=dict)
    """By vector field, those that were built anew."""
    embedders: Mapping[str, str] = field(default_factory=dict)
    """Names by vector field; none in a dry run."""
    older_graphs: Sequence[str] = ()
    """Kinds of the graphs that are out of date now."""

    def lines(self, seconds: float, *, list_skipped: bool) -> Iterator[str]:
        """Yield what a terminal shows, after so many seconds; ten files of a kind (skipped, …) by name, or all."""
        if self.report:
            yield from self._summary(self.report, seconds)
            yield from self.report.notes
            yield from _read_as(self.report)
            yield from _left_out(self.report, None if list_skipped else _NAMES_SHOWN)
            yield from _skipped(self.report, None if list_skipped else _NAMES_SHOWN)
        for name, params in self.indexes.items():
            values = {key: value for key, value in params.items() if key not in ("index_type", "params")}
            inner = params.get("params")
            values |= inner if isinstance(inner, Mapping) else {}
            shown = ", ".join(f"{key} {value}" for key, value in values.items())
            yield f"index of {name}: {params.get('index_type')}, {shown}"
        if self.older_graphs:
            options = " ".join(f"--graph {kind}" for kind in self.older_graphs)
            kinds = ", ".join(self.older_graphs)
            yield f"out of date: graph {kinds}; make again: judgetree index -c {self.collection} {options}"

    def to_document(self, graphs: Sequence[MadeGraph], *, seconds: float) -> dict[str, object]:
        """Return this and the graphs that were made after it as plain data for ``json.dumps``."""
        return {
            "collection": self.collection,
            **(_figures(self.report) if self.report else {}),
            **({"indexes": self.indexes} if self.indexes else {}),
            **({"older_graphs": self.older_graphs} if self.older_graphs else {}),
            **({"graphs": [each.to_document() for each in graphs]} if graphs else {}),
            "embedders": dict(self.embedders),
            "seconds": round(seconds, 2),
        }

    def _summary(self, report: IndexReport, seconds: float) -> Iterator[str]:
        names = ", ".join(sorted(set(self.embedders.values())))
        speed = f", {each:,.0f} a second" if (each := _chunks_per_second(report)) >= 1 else ""
        by = f", embedder {names}" if names else ""
        chunks = count_of(report.chunks, "chunk")
        saved = f"; {report.cached:,} from the vector cache" if report.cached else ""
        yield f"{self.collection}: {chunks} ({report.embedded:,} embedded now{speed}{saved}){by}"
        yield (
            f"files: {len(report.added)} new, {len(report.changed)} changed, {report.unchanged} unchanged, "
            f"{len(report.removed)} removed, {len(report.skipped)} skipped, {report.ignored} of other types; "
            f"{seconds:.1f} s"
        )


def older_graphs(index: Index, home: Path, report: IndexReport | None, made_anew: Sequence[str]) -> list[str]:
    """Return the kinds of graphs below ``home`` that a change has put out of date and that are not made anew."""
    if report is None or not (report.added or report.changed or report.removed):
        return []
    files = GraphFiles.of(index, home)
    return [kind for kind in KINDS if kind not in made_anew and files.path(kind).is_file()]


def _chunks_per_second(report: IndexReport) -> float:
    """Return the speed of embedding; 0 if it took too short a time to tell."""
    return report.embedded / report.embedding_s if report.embedding_s >= _TELLING_S else 0.0


def _figures(report: IndexReport) -> dict[str, object]:
    return {
        **asdict(report),
        "embedding_s": round(report.embedding_s, 2),
        "chunks_per_second": round(_chunks_per_second(report), 1),
    }


def _read_as(report: IndexReport) -> Iterator[str]:
    for encoding in sorted(set(report.encodings.values())):
        sources = [source for source, found in report.encodings.items() if found == encoding]
        more = f" and {len(sources) - _NAMES_SHOWN} more" if len(sources) > _NAMES_SHOWN else ""
        yield f"read as {encoding}: {', '.join(sources[:_NAMES_SHOWN])}{more}"


def _left_out(report: IndexReport, most: int | None) -> Iterator[str]:
    shown = dict(itertools.islice(report.left_out.items(), most))
    for source, found in shown.items():
        yield f"left out of {source}: {format_left_out(found)}"
    if len(report.left_out) > len(shown):
        yield f"and of {len(report.left_out) - len(shown)} more; --list-skipped names all"


def _skipped(report: IndexReport, most: int | None) -> Iterator[str]:
    shown = report.skipped[:most]
    for file in shown:
        yield f"skipped {file.source}: {file.reason}"
    if len(report.skipped) > len(shown):
        yield f"and {len(report.skipped) - len(shown)} more; --list-skipped names all"
