"""A scripted model that can be held back."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, CHINESE
from tests.app.server.conversations.asking import Gate
from tests.app.server.serving import serving
from tests.app.talks import DRUM


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def without_grace(settings: Settings) -> Iterator[httpx.Client]:
    """A client of a server that cancels a question once its connection is lost."""
    options = ServerOptions(requests_per_minute=1_000_000, grace_s=0)
    with serving(settings, options) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture
def scripted(gate: Gate) -> Iterator[ScriptedServer]:
    with ScriptedServer([CHAIN, CHINESE], dialogues=[DRUM], responses=gate) as server:
        yield server
        gate.open()
