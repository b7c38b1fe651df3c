"""All passages of a collection, read from the files of a Milvus Lite folder and from a server alike."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path

import pytest

from judgetree.modules.errors import CollectionError
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.linked_chunks import LinkedChunks, linked_chunks_of
from judgetree.modules.retriever.own import create_own_retriever
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings
from judgetree.modules.structure.building import build_graph
from judgetree.modules.structure.passages import passages_of
from tests.database_servers import LiteServer
from tests.modules.fake_embeddings import BagOfWordsEmbedder


@pytest.fixture(params=["folder", "server"])
def index(request: pytest.FixtureRequest, tmp_path: Path, lite_server: LiteServer) -> Index:
    rows = [
        {"text": "Oslo is in Norway.", "metadata": {"title": "Oslo"}},
        {"text": "Anna was born in Oslo.", "metadata": {"title": "Anna Berg", "year": 1900}},
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    uri = str(tmp_path / "milvus.db") if request.param == "folder" else lite_server.uri
    made = Index(
        BagOfWordsEmbedder(), tmp_path / "corpus.jsonl", vector_store_name=f"passages_{uuid.uuid4().hex}", uri=uri
    )
    request.addfinalizer(made.close)
    made.get_index_done()
    return made


class FewerHits(Retriever):
    """The built-in search, changed as README says."""


def test_passages_links_and_linked_chunks_of_a_collection(index: Index, tmp_path: Path) -> None:
    by_title = {str(each.metadata["title"]): each for each in passages_of(index)}
    assert by_title["Anna Berg"].text == "Anna was born in Oslo."
    assert (by_title["Anna Berg"].metadata["year"], by_title["Oslo"].source) == (1900, "corpus.jsonl")
    assert build_graph(index, "links", tmp_path / "home").edges == {"names": 1, "title_of": 1}
    links = LinkedChunks(index, tmp_path / "home")
    anna, oslo = by_title["Anna Berg"].chunk_id, by_title["Oslo"].chunk_id
    [linked] = asyncio.run(links.linked([anna], without={anna}, most=3))
    assert (linked.chunk.metadata["chunk_id"], linked.linked_from, linked.name) == (oslo, anna, "Oslo")
    hits = {chunk.metadata["chunk_id"]: chunk for chunk, _ in Retriever(index).get_similar_chunk_with_score("Oslo")}
    hit = hits[oslo]
    assert (linked.chunk.page_content, linked.chunk.metadata) == (hit.page_content, hit.metadata)
    assert asyncio.run(links.linked([anna], without={anna, oslo}, most=3)) == []
    assert asyncio.run(linked_chunks_of(Retriever(index), tmp_path / "home").linked([anna], without={anna}, most=3))
    own = create_own_retriever(FewerHits, index=index, topk=3, settings=load_settings())
    assert asyncio.run(linked_chunks_of(own, tmp_path / "home").linked([anna], without={anna}, most=3))
    filtered = Retriever(index)
    filtered.expr = "year == 1900"
    assert asyncio.run(linked_chunks_of(filtered, tmp_path / "home").linked([anna], without={anna}, most=3)) == []
    assert asyncio.run(linked_chunks_of(filtered, tmp_path / "home").linked([oslo], without={oslo}, most=3))


def test_links_of_a_changed_collection_are_refused(index: Index, tmp_path: Path) -> None:
    build_graph(index, "links", tmp_path / "home")
    links = linked_chunks_of(Retriever(index), tmp_path / "home")
    assert links.fingerprint()["kind"] == "links"
    (tmp_path / "new.md").write_text("# Norm KV-7\n\ntext")
    index.add_new_files(tmp_path / "new.md")
    with pytest.raises(CollectionError, match="out of date"):
        links.fingerprint()


def test_a_refusal_of_the_store_is_a_user_error(index: Index, tmp_path: Path) -> None:
    build_graph(index, "links", tmp_path / "home")
    links = LinkedChunks(index, tmp_path / "home", expr="no filter(")
    graph = links.open().graph
    with pytest.raises(CollectionError, match="could not read chunks"):
        asyncio.run(links.linked(graph.passages, without=(), most=3))
