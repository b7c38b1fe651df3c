"""The graph of links: passages that name the title of another document, made without a model.

A passage has an edge ``names`` to each phrase of its text that is a title, and that phrase an edge ``title_of`` to each
passage of the documents with that title.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .passage_graph import Edges, PassageGraph
from .passages import Passage
from .titles import TitleFinder, common, documents_of, names_of

KIND = "links"
NAMES, TITLE_OF = "names", "title_of"
"""Types of edges."""
_VERSION = 1


def link_graph(passages: Iterable[Passage], content: str) -> PassageGraph:
    """Link passages by the titles that they name; ``content`` is the collection's content digest.

    A passage is not linked by a title of its own document, nor by a name of more than 1 % of all passages (and 20).
    """
    given = sorted(passages, key=lambda each: each.chunk_id)
    places = {each.chunk_id: node for node, each in enumerate(given)}
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for document in documents_of(given):
        for name in names_of(document.title):
            holders[name] += (places[chunk_id] for chunk_id in document.chunk_ids)
    finder = TitleFinder(holders)
    owned = {name: frozenset(nodes) for name, nodes in holders.items()}
    named = [
        Counter(name for name in finder.names_in(each.text) if node not in owned[name])
        for node, each in enumerate(given)
    ]
    too_common = common(Counter(name for names in named for name in names), len(given))
    phrases = sorted({name for names in named for name in names} - too_common)
    number = {phrase: node for node, phrase in enumerate(phrases, start=len(given))}
    return PassageGraph(
        kind=KIND,
        content=content,
        passages=[each.chunk_id for each in given],
        phrases=phrases,
        edges={
            NAMES: Edges.counted(named, number),
            TITLE_OF: Edges.of((number[name], node, 1.0) for name in phrases for node in set(holders[name])),
        },
        made_with={"version": _VERSION, "too_common": len(too_common)},
    )


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A passage that is linked with another."""

    chunk_id: str
    name: str
    """The title by which they are linked."""
    is_named: bool
    """Whether the other passage names this one's title; False the other way round."""


class Links:
    """The neighbours of passages in a graph of links."""

    def __init__(self, graph: PassageGraph) -> None:
        self.graph = graph
        self._titles = graph.edges[TITLE_OF]
        self._titled = self._titles.reversed()
        self._named = graph.edges[NAMES]
        self._naming = self._named.reversed()

    def of(self, chunk_id: str) -> list[Neighbour]:
        """Return the neighbours of a passage, each once: those that it names, then those that name it.

        Of either, those come first whose title leads to the fewest passages. A passage that the graph has not has none.
        """
        node = self.graph.passage(chunk_id)
        if node is None:
            return []
        out = [(name, self._titles.targets_of(name)[0].tolist()) for name in self._named.targets_of(node)[0].tolist()]
        back = [(name, self._naming.targets_of(name)[0].tolist()) for name in self._titled.targets_of(node)[0].tolist()]
        found: dict[int, Neighbour] = {}
        for ways, is_named in ((out, True), (back, False)):
            for name, nodes in sorted(ways, key=lambda way: (len(way[1]), way[0])):
                for other in nodes:
                    neighbour = Neighbour(
                        chunk_id=self.graph.name_of(other), name=self.graph.name_of(name), is_named=is_named
                    )
                    found.setdefault(other, neighbour)
        found.pop(node, None)
        return list(found.values())
