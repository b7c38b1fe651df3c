from __future__ import annotations

from collections.abc import Iterator

import pytest

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([CHAIN]) as running:
        yield running
