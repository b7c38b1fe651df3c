"""Where keys are kept: a file of the home folder, or PostgreSQL beside the checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from judgetree.app.server.keys.tables import KeyTables
from judgetree.modules.addresses import Address
from judgetree.modules.settings import Settings
from tests.graphs.conftest import postgres_url

__all__ = ["postgres_url"]

OpenTables = Callable[[], KeyTables]


@pytest.fixture(params=["file", "postgres"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenTables]:
    """Opens the tables once more, as another worker does."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    with ExitStack() as stack:

        def opened() -> KeyTables:
            settings = Settings(home=tmp_path / "home", checkpoints=Address(url))
            return stack.enter_context(closing(KeyTables(settings)))

        if url:
            first = opened()
            first.write(("DELETE FROM keys", ()), ("DELETE FROM key_use", ()))
        yield opened
