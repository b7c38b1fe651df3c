"""The graph of triples: phrases as nodes, relations as labels, and the passages that state them."""

from __future__ import annotations

from judgetree.modules.structure.passage_graph import PassageGraph
from judgetree.modules.structure.passages import Passage
from judgetree.modules.structure.triples import OBJECT, RELATED, SUBJECT, Triple, triple_graph


def test_passages_are_joined_with_subjects_and_objects_and_these_with_each_other() -> None:
    passages = [Passage(chunk_id=each, text="") for each in ("b", "a", "empty")]
    triples = {
        "a": [Triple("J. Smith", "founded", "Orvane"), Triple("…", "is", "nothing"), Triple("ORVANE", "is", "orvane")],
        "b": [Triple("Orvane", "lies in", "Oslo"), Triple("j smith", "founded", "Orvane")],
    }
    graph = triple_graph(passages, "digest", triples, "model")
    assert (list(graph.passages), graph.phrases) == (["a", "b", "empty"], ["j smith", "orvane", "oslo"])
    related = graph.edges[RELATED]
    said = [
        (graph.name_of(s), graph.relations[label], graph.name_of(o), weight)
        for s, o, label, weight in zip(
            related.sources.tolist(), related.targets.tolist(), related.labels.tolist(), related.weights.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    assert said == [("j smith", "founded", "orvane", 2.0), ("orvane", "lies in", "oslo", 1.0)]
    assert graph.edges[SUBJECT].targets_of(1)[0].tolist() == [3, 4]
    assert graph.edges[OBJECT].targets_of(2)[0].tolist() == []
    assert graph.made_with == {"version": 1, "made_by": "model", "without_triples": 1}
    read = PassageGraph.from_bytes(graph.to_bytes(), where="file", remedy="")
    assert (read.digest, read.relations) == (graph.digest, graph.relations)
