"""A scripted model that can be held back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, CHINESE
from tests.app.server.conversations.asking import Gate
from tests.app.talks import DRUM


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def scripted(gate: Gate) -> Iterator[ScriptedServer]:
    with ScriptedServer([CHAIN, CHINESE], dialogues=[DRUM], responses=gate) as server:
        yield server
        gate.open()
