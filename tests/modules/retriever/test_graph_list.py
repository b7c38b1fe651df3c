"""A graph as one more list of a search: what it adds, what it leaves, and when it is refused."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import pytest

from judgetree.modules.errors import CollectionError, DependencyError, SearchArgumentError, SettingsError
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.graph_list import GraphList
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.structure.building import build_graph
from judgetree.modules.structure.pagerank import Walk
from tests.database_servers import LiteServer
from tests.modules.fake_embeddings import BagOfWordsEmbedder

FILLER = [f"unrelated words number {number}" for number in range(20)]
TEXTS = ["A film about rivers, directed by Anna Berg.", "Anna Berg was born in Oslo.", "Oslo lies in Norway.", *FILLER]


@pytest.fixture(params=["folder", "server"])
def index(request: pytest.FixtureRequest, tmp_path: Path, lite_server: LiteServer) -> Index:
    rows = [{"text": text, "metadata": {"title": f"T{number}", "n": number}} for number, text in enumerate(TEXTS)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    uri = str(tmp_path / "milvus.db") if request.param == "folder" else lite_server.uri
    made = Index(
        BagOfWordsEmbedder(), tmp_path / "corpus.jsonl", vector_store_name=f"graphs_{uuid.uuid4().hex}", uri=uri
    )
    request.addfinalizer(made.close)
    made.get_index_done()
    build_graph(made, "entities", tmp_path)
    return made


def numbers(retriever: Retriever, query: str) -> list[int]:
    return [chunk.metadata["n"] for chunk, _ in retriever.get_similar_chunk_with_score(query)]


def test_the_graph_adds_passages_that_no_field_finds_with_their_text_and_the_filter_holds(
    index: Index, tmp_path: Path
) -> None:
    plain = Retriever(index, topk=5, search_type="sparse")
    assert numbers(plain, "film about rivers") == [0]
    fused = Retriever(index, topk=5, search_type="sparse", graph=GraphList(index, tmp_path))
    assert numbers(fused, "film about rivers") == [0, 1, 2]
    added = fused.get_similar_chunk_with_score("film about rivers")[1][0]
    assert added == Retriever(index, topk=1, search_type="sparse").get_similar_chunk_with_score("born")[0][0]
    fused.expr = "n != 1"
    assert numbers(fused, "film about rivers") == [0, 2]


def test_a_query_that_the_graph_does_not_know_has_the_hits_and_scores_of_the_plain_search(
    index: Index, tmp_path: Path
) -> None:
    graph = GraphList(index, tmp_path, walk=Walk(damping=0.0))
    for ranker in ("rrf", "weighted"):
        plain = Retriever(index, topk=4, search_type="hybrid", ranker_type=ranker)
        found = [hit[0] for hit in plain.get_similar_chunk_with_score("Oslo Norway")]
        fused = Retriever(index, topk=4, search_type="hybrid", ranker_type=ranker, graph=graph)
        # With no step, the list is that of the seeds: the order of both stays, of whatever the fields agree on.
        assert fused.get_similar_chunk_with_score("oslo norway")[0][0] == found[0]
    nothing = Retriever(index, topk=4, search_type="sparse", graph=graph)
    assert nothing.get_similar_chunk_with_score("xyzzy") == []


def test_weights_take_one_more_for_the_graph(index: Index, tmp_path: Path) -> None:
    def weighted(*weights: float) -> Retriever:
        return Retriever(
            index,
            topk=2,
            search_type="hybrid",
            ranker_type="weighted",
            ranker_params={"weights": weights},
            graph=GraphList(index, tmp_path),
        )

    alone = weighted(0.0, 0.0, 1.0).get_similar_chunk_with_score("Anna Berg")
    assert {chunk.metadata["n"] for chunk, _ in alone} == {0, 1}
    assert alone[0][1] == 1.0
    with pytest.raises(SearchArgumentError, match="graph"):
        weighted(0.5, 0.5).check_args()


def test_the_graph_and_the_walk_are_in_the_fingerprint(index: Index, tmp_path: Path) -> None:
    plain = Retriever(index).fingerprint()
    graph = Retriever(index, graph=GraphList(index, tmp_path)).fingerprint()
    other = Retriever(index, graph=GraphList(index, tmp_path, walk=Walk(damping=0.1))).fingerprint()
    assert "graph" not in plain
    assert {key: value for key, value in graph.items() if key != "graph"} == plain
    assert graph["graph"] != other["graph"]


def test_a_missing_or_stale_graph_and_an_unknown_kind_are_refused(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(CollectionError, match=r"no graph 'entities' yet.*--graph entities"):
        Retriever(index, graph="entities").check_args()
    with pytest.raises(SettingsError, match="no graph 'nouns'"):
        Retriever(index, graph="nouns").check_args()
    with pytest.raises(SearchArgumentError, match="needs an indexed collection"):
        Retriever(index.vector_store, graph="entities").check_args()
    (tmp_path / "new.md").write_text("# Norm KV-7\n\ntext")
    index.add_new_files(tmp_path / "new.md")
    with pytest.raises(CollectionError, match="out of date"):
        Retriever(index, graph=GraphList(index, tmp_path)).check_args()
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path))
    build_graph(index, "entities", tmp_path)
    assert numbers(Retriever(index, topk=1, graph="entities"), "lies in Norway") == [2]


def test_without_scipy_the_error_names_the_extra(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(DependencyError, match=r"judgetree\[graph\]"):
        Retriever(index, graph=GraphList(index, tmp_path)).check_args()
