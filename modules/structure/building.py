"""Making the graphs of a collection, by kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import CollectionError, SettingsError
from ..index.index import Index
from ..progress import StageProgress
from . import entities, links, triples
from .graph_files import GraphFiles
from .passage_graph import PassageGraph
from .passages import Passage, passages_of

GraphMaker = Callable[[Iterable[Passage], str], PassageGraph]
"""Makes a graph of the passages and the content digest of a collection."""
GRAPHS: Mapping[str, GraphMaker] = {
    links.KIND: links.link_graph,
    entities.KIND: entities.entity_graph,
}
"""What makes a graph without a model, by kind."""
KINDS = (*sorted(GRAPHS), triples.KIND)
"""All kinds of graphs."""


@dataclass(frozen=True, kw_only=True)
class GraphReport:
    """The result of making a graph."""

    kind: str
    passages: int
    phrases: int
    edges: dict[str, int]
    """Numbers of edges by type."""
    digest: str
    path: str
    bytes: int
    seconds: float
    """Wall time, reading the passages included."""


def check_kind(kind: str) -> None:
    """Check the kind of a graph.

    Raises:
        SettingsError: There is no such kind; the message lists those that there are.
    """
    if kind not in KINDS:
        raise SettingsError(f"There is no graph {kind[:40]!r}. Allowed: {', '.join(sorted(KINDS))}.")


def build_graph(
    index: Index,
    kind: str,
    home: Path,
    on_progress: StageProgress | None = None,
    *,
    make: GraphMaker | None = None,
) -> GraphReport:
    """Make the graph of a collection as it is now, and keep it below ``home``, the data folder.

    ::

        settings = load_settings()
        with open_index("standards", settings) as index:
            report = build_graph(index, "links", settings.home)

    With ``make``, that makes the graph; ``build_triple_graph`` does so with the triples of a model.

    Raises:
        SettingsError: There is no such kind, or a model has to be asked for it first.
        CollectionError: There is no such collection, or it was written to meanwhile.
        WritingError: The graph could not be written.
    """
    check_kind(kind)
    make = make or GRAPHS.get(kind)
    if make is None:
        raise SettingsError(f"The graph {kind!r} is made of what a model draws from the passages: build_triple_graph.")
    started, report = time.monotonic(), on_progress or (lambda done, total, stage: None)
    report(0, 2, "graph")
    content = index.content_digest()
    passages = list(passages_of(index))
    report(1, 2, "graph")
    graph = make(passages, content)
    files = GraphFiles.of(index, home)
    if index.content_digest() != content:
        raise CollectionError(
            f"The collection {index.vector_store_name!r} was written to while its graph was made. Make it again."
        )
    files.save(graph)
    report(2, 2, "graph")
    path = files.path(kind)
    return GraphReport(
        kind=kind,
        passages=len(graph.passages),
        phrases=len(graph.phrases),
        edges={name: len(edges) for name, edges in graph.edges.items()},
        digest=graph.digest,
        path=str(path),
        bytes=path.stat().st_size,
        seconds=round(time.monotonic() - started, 2),
    )
