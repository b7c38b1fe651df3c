from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.database_servers import postgres_server, redis_server, require_postgres
from tests.graphs.fakes import FakeLLM


@pytest.fixture
def reader() -> FakeLLM:
    return FakeLLM(lambda messages: "Vellin")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Start PostgreSQL once for all tests."""
    require_postgres()
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start Redis once for all tests."""
    with redis_server(tmp_path_factory.mktemp("redis"), has_modules=True) as server:
        yield server.url
