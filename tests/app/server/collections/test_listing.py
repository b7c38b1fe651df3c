"""Collections as requests see them: listed, one by one, and searched in three ways."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from judgetree.app.cli import main
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION, CORPUS, write_corpus
from tests.app.server.serving import serving


def index_more(tmp_path: Path, files: dict[str, str], name: str = COLLECTION) -> None:
    assert main(["index", str(write_corpus(tmp_path / "more", files)), "-c", name]) == 0


def test_a_collection_tells_its_files_and_chunks(http: httpx.Client) -> None:
    (listed,) = http.get("/v1/collections").json()["data"]
    one = http.get(f"/v1/collections/{COLLECTION}").json()
    assert one.pop("sources") == [{"source": source, "chunks": 1} for source in sorted(CORPUS)]
    assert listed == one
    assert (one["files"], one["chunks"], one["embedders"], one["problem"]) == (4, 4, ["local:use"], "")
    assert one["example_title"] in ("Norm A", "Drums")  # the other files have no title of their own
    page = http.get(f"/v1/collections/{COLLECTION}", params={"limit": 2, "offset": 1}).json()
    assert [each["source"] for each in page["sources"]] == sorted(CORPUS)[1:3]


def test_what_another_process_indexes_is_seen_at_once(http: httpx.Client, tmp_path: Path) -> None:
    assert http.get(f"/v1/collections/{COLLECTION}").json()["files"] == 4
    index_more(tmp_path, {"c.md": "Kettles whistle."})
    found = http.get(f"/v1/collections/{COLLECTION}/search", params={"query": "kettles whistle"}).json()
    assert found["sparse"][0]["text"] == "Kettles whistle."
    assert http.get(f"/v1/collections/{COLLECTION}").json()["files"] == 5


def test_a_query_is_searched_in_three_ways(http: httpx.Client) -> None:
    params = {"query": "How thick is the wall of the drum?", "topk": 2}
    found = http.get(f"/v1/collections/{COLLECTION}/search", params=params).json()
    for kind in ("dense", "sparse", "fused"):
        hits = found[kind]
        assert [hit["rank"] for hit in hits] == [1, 2]
        assert hits[0]["source"] == "b.md"
        assert hits[0]["text"] == CORPUS["b.md"]
        assert hits[0]["score"] > hits[1]["score"]
    assert found["sparse"][0]["score"] != found["dense"][0]["score"]
    assert {hit["chunk_id"] for hit in found["fused"]} <= {hit["chunk_id"] for hit in found["dense"] + found["sparse"]}


def test_a_query_without_a_word_of_the_documents_has_dense_hits_alone(http: httpx.Client) -> None:
    found = http.get(f"/v1/collections/{COLLECTION}/search", params={"query": "zzz \x00 \ufffd"}).json()
    assert found["sparse"] == []
    assert found["dense"]


@pytest.mark.parametrize(
    ("params", "status"),
    [({}, 422), ({"query": ""}, 422), ({"query": "  "}, 422), ({"query": "a", "topk": 0}, 422)],
)
def test_what_is_no_query_is_refused(http: httpx.Client, params: dict[str, str | int], status: int) -> None:
    answer = http.get(f"/v1/collections/{COLLECTION}/search", params=params)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, "invalid_request_error")


@pytest.mark.parametrize("name", ["nothing", "%00", "notes%2F..", "..", "a" * 255])
def test_what_does_not_exist_is_not_found(http: httpx.Client, name: str) -> None:
    for path in (f"/v1/collections/{name}", f"/v1/collections/{name}/search?query=a"):
        assert http.get(path).status_code == 404


def test_what_is_no_text_is_no_name(http: httpx.Client) -> None:
    assert http.get("/v1/collections/%ED%A0%80").status_code == 400


def test_physical_collections_and_memories_stay_hidden(http: httpx.Client, settings: Settings) -> None:
    asked = {"model": f"{COLLECTION}/naive", "messages": [{"role": "user", "content": CHAIN.question}]}
    assert http.post("/v1/chat/completions", json=asked).status_code == 200
    from judgetree.modules.index.connection import connect

    connection = connect(str(settings.milvus_address))
    kept = set(connection.client.list_collections())
    connection.close()
    assert len(kept) > 1, "the conversation has a memory"
    assert [each["name"] for each in http.get("/v1/collections").json()["data"]] == [COLLECTION]
    assert {http.get(f"/v1/collections/{name}").status_code for name in kept} == {404}


def test_a_collection_that_is_not_served_does_not_exist(settings: Settings, tmp_path: Path) -> None:
    index_more(tmp_path, {"c.md": "Kettles whistle."}, "kettles")
    with (
        serving(settings, ServerOptions(collections=("kettles",))) as url,
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        assert [each["name"] for each in http.get("/v1/collections").json()["data"]] == ["kettles"]
        assert http.get(f"/v1/collections/{COLLECTION}").status_code == 404
        assert http.get(f"/v1/collections/{COLLECTION}/search?query=a").status_code == 404


def test_without_a_database_there_are_no_collections(settings: Settings, tmp_path: Path) -> None:
    empty = settings.model_copy(update={"home": tmp_path / "empty"})
    with serving(empty) as url:
        assert httpx.get(f"{url}/v1/collections", timeout=60).json() == {"data": [], "may_fill": None}
        assert httpx.get(f"{url}/v1/collections/{COLLECTION}", timeout=60).status_code == 404
    assert not (tmp_path / "empty").exists()
