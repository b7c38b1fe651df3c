"""Conversations over a small table, led by a scripted model; a file may have a model or memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from judgetree.graphs.conversations import Conversations
from tests.graphs.conversation.talk import TalkingLLM, open_conversations
from tests.graphs.fakes import FakeLLM


@pytest.fixture
def llm() -> TalkingLLM:
    return TalkingLLM()


@pytest.fixture
def talks(llm: TalkingLLM, tmp_path: Path) -> Iterator[Conversations]:
    with open_conversations(tmp_path, llm) as opened:
        yield opened


@pytest.fixture
def opened(llm: FakeLLM, tmp_path: Path) -> Iterator[Callable[..., Conversations]]:
    """Opens conversations with the options that it is given; keyword arguments as in ``open_conversations``."""
    with ExitStack() as stack:
        yield lambda llm=llm, **more: stack.enter_context(open_conversations(tmp_path, llm, **more))
