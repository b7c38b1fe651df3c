"""Milvus and model endpoints for tests: Milvus once for each test worker, endpoints once for each module."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.index.connection import MilvusConnection, connect
from judgetree.modules.index.index import Index
from tests.database_servers import LiteServer, milvus_lite_server
from tests.graphs.conftest import postgres_url, redis_url
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.model_endpoints import RawEndpoint, as_new, serve_raw
from tests.modules.rerank_server import RerankServer, serve_rerank

__all__ = ["postgres_url", "redis_url"]


@pytest.fixture(scope="session")
def lite_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("milvus") / "embedded.db")


@pytest.fixture(scope="session")
def lite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiteServer]:
    with milvus_lite_server(tmp_path_factory.mktemp("milvus") / "served.db") as server:
        yield server


@pytest.fixture(scope="session", params=["embedded", "server"])
def connection(request: pytest.FixtureRequest) -> Iterator[MilvusConnection]:
    """Either backend, held open over the session: opening a Lite folder again and again would be slow."""
    uri = (
        request.getfixturevalue("lite_folder")
        if request.param == "embedded"
        else request.getfixturevalue("lite_server").uri
    )
    held = connect(uri)
    yield held
    held.close()


@pytest.fixture(scope="session")
def embedded(lite_folder: str) -> Iterator[MilvusConnection]:
    """The embedded backend alone, for what is the same on both."""
    held = connect(lite_folder)
    yield held
    held.close()


@pytest.fixture
def embedder() -> BagOfWordsEmbedder:
    return BagOfWordsEmbedder()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


MakeIndex = Callable[..., Index]


@pytest.fixture
def make_index(embedder: BagOfWordsEmbedder, docs: Path) -> Iterator[Callable[[MilvusConnection], Index]]:
    """An index over ``docs`` in a collection of its own, which is dropped after the test."""
    made: list[Index] = []

    def make(connection: MilvusConnection) -> Index:
        index = Index(embedder, docs, None, f"test_{uuid.uuid4().hex[:12]}", uri=connection.uri, token="")
        made.append(index)
        return index

    yield make
    for index in made:
        drop_collection(index)
        index.close()


@pytest.fixture
def index(connection: MilvusConnection, make_index: MakeIndex) -> Index:
    """An index over ``docs`` in a collection of its own, on either backend."""
    return make_index(connection)


@pytest.fixture
def lite_index(embedded: MilvusConnection, make_index: MakeIndex) -> Index:
    """The same on embedded Milvus Lite alone, for what is the same on both."""
    return make_index(embedded)


def drop_collection(index: Index) -> None:
    client = index.connection.client
    for physical in client.list_collections():
        if physical.startswith(f"{index.vector_store_name}__"):
            client.drop_collection(physical)


@pytest.fixture
def rerank_server() -> Iterator[RerankServer]:
    with serve_rerank() as server:
        yield server


@pytest.fixture(scope="module")
def started_server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def server(started_server: ScriptedServer) -> ScriptedServer:
    """A model endpoint that has served nothing yet."""
    return as_new(started_server)


@pytest.fixture(scope="module")
def started_raw() -> Iterator[RawEndpoint]:
    with serve_raw() as endpoint:
        yield endpoint


@pytest.fixture
def raw(started_raw: RawEndpoint) -> RawEndpoint:
    """A model endpoint that sends bytes as they are given."""
    started_raw.will_send()
    return started_raw
