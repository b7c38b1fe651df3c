"""What a question reaches in a graph of a collection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...modules.errors import SettingsError
from ...modules.index.index import Index
from ...modules.retriever.retriever import Retriever
from ...modules.storage.texts import printable
from ...modules.structure.building import check_kind
from ...modules.structure.graph_files import GraphFiles
from ...modules.structure.neighbourhood import MOST_NODES, Neighbourhood, neighbourhood
from ...modules.structure.pagerank import PassageRanking
from ...modules.structure.passages import Passage, passages_by_id
from ..drawing.drawn import DrawnGraph
from ..drawing.layout import one_line, shorten
from .dot import draw_neighbourhood_dot
from .html import draw_neighbourhood_html
from .words import PassageText, format_neighbourhood, shown_phrases

if TYPE_CHECKING:
    import networkx as nx

MOST_SEEDS = 10
"""Hits of a dense and of a sparse search at which the walk begins; the first weighs 1, the second 1/2, …"""


@dataclass(frozen=True, kw_only=True)
class ShownGraph(DrawnGraph):
    """What a question reaches in a graph; a notebook shows its page."""

    drawn_as = "graph of a question"

    neighbourhood: Neighbourhood
    texts: Mapping[str, PassageText]
    """By chunk id."""

    def to_text(self, *, width: int = 120) -> str:
        """Return lines of at most ``width`` columns: passages, phrases, relations, best first."""
        found, names = self.neighbourhood, shown_phrases(self.neighbourhood, self.texts)
        lines = [format_neighbourhood(found), "passages:"]
        for place in found.places:
            mark = "*" if place.seed else " "
            if place.kind == "passage":
                text = self.texts.get(place.name, PassageText(title=place.name, text=""))
                lines.append(f"{mark} {place.score:.3f}  {text.title}: {one_line(text.text)}")
        phrases = [
            f"{names[place.node]}{'*' if place.seed else ''}" for place in found.places if place.kind == "phrase"
        ]
        lines += ["phrases: " + "; ".join(phrases)] if phrases else []
        relations = [
            f"  {names[bond.source]} | {bond.relation} | {names[bond.target]}" for bond in found.bonds if bond.relation
        ]
        lines += ["relations:", *relations] if relations else []
        return "\n".join("  " * line.startswith("  ") + shorten(line, max(width - 2, 8)) for line in lines)

    def to_dot(self) -> str:
        """Return Graphviz DOT text."""
        return draw_neighbourhood_dot(self.neighbourhood, self.texts)

    def to_html(self, *, picture: bool | None = None) -> str:
        """Return one self-contained HTML page; with None it has the picture if that can be drawn."""
        return draw_neighbourhood_html(self.neighbourhood, self.texts, self.to_svg, picture=picture)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return everything as JSON."""
        document = {**asdict(self.neighbourhood), "texts": {key: asdict(each) for key, each in self.texts.items()}}
        return json.dumps(document, ensure_ascii=False, indent=indent)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return a directed graph; nodes are chunk ids and phrases, with kind, label, text, PageRank and seed."""
        import networkx as nx  # noqa: PLC0415 - loaded when it is used

        found, names = self.neighbourhood, shown_phrases(self.neighbourhood, self.texts)
        graph = nx.MultiDiGraph()
        keys = {place.node: printable(f"{place.kind}/{place.name}") for place in found.places}
        for place in found.places:
            text = self.texts.get(place.name) if place.kind == "passage" else None
            label = text.title if text else names.get(place.node, place.name)
            graph.add_node(
                keys[place.node],
                kind=place.kind,
                label=printable(label),
                text=printable(text.text) if text else "",
                pagerank=place.score,
                seed=place.seed,
            )
        for bond in found.bonds:
            stated = printable(" ".join(bond.passages))
            relation = printable(bond.relation)
            graph.add_edge(keys[bond.source], keys[bond.target], relation=relation, passages=stated)
        return graph

    def to_graphml(self) -> str:
        """Return the graph of ``to_networkx`` as GraphML."""
        import networkx as nx  # noqa: PLC0415 - loaded when it is used

        return "\n".join(nx.generate_graphml(self.to_networkx()))

    def _repr_svg_(self) -> str:
        return self.to_svg()


def show_graph(question: str, index: Index, home: Path, *, kind: str, most_nodes: int = MOST_NODES) -> ShownGraph:
    """Return what a question reaches in a graph of a collection: the walk of ``PassageRanking`` from its hits.

    ::

        settings = load_settings()
        with open_index("papers", settings) as index:
            shown = show_graph("Who founded Orvane?", index, settings.home, kind="triples")
        Path("graph.svg").write_text(shown.to_svg())

    Args:
        question: The question; it is searched by embeddings and by words.
        index: The collection.
        home: The data folder, which has the graph.
        kind: Kind of the graph: links, entities or triples.
        most_nodes: Most passages and phrases to show.

    Raises:
        SettingsError: The question is empty.
        CollectionError: The collection has no such graph, or has changed since it was made.
        DependencyError: scipy is not installed.
    """
    if not question.strip():
        raise SettingsError("The question is empty.")
    check_kind(kind)
    ranking = PassageRanking(GraphFiles.of(index, home).load(kind, index.content_digest()))
    retriever = Retriever(index, topk=MOST_SEEDS)
    hits: dict[str, float] = {}
    for search in (retriever.dense_search, retriever.sparse_search):
        for rank, (chunk, _) in enumerate(search(question), start=1):
            chunk_id = str(chunk.metadata["chunk_id"])
            hits[chunk_id] = hits.get(chunk_id, 0.0) + 1.0 / rank
    found = neighbourhood(ranking, question, hits, most_nodes=most_nodes)
    passages = passages_by_id(index, [place.name for place in found.places if place.kind == "passage"])
    return ShownGraph(neighbourhood=found, texts=_texts(passages))


def _texts(passages: Iterable[Passage]) -> dict[str, PassageText]:
    return {
        each.chunk_id: PassageText(title=str(each.metadata.get("title") or each.source), text=each.text)
        for each in passages
    }
