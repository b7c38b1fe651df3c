"""Turns of a conversation whose store fails while the model answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from judgetree.graphs.conversations import Conversations
from judgetree.modules.errors import UserError
from tests.graphs.conversation.talk import CLASS, TalkingLLM, open_conversations, settings_in


class During(TalkingLLM):
    """Does something while it answers for the first time."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._acts = [act]

    def _read(self, query: str, text: str) -> str:
        if self._acts:
            self._acts.pop()()
        return super()._read(query, text)


def opened(llm: TalkingLLM, url: str, folder: Path) -> Conversations:
    """Conversations with their checkpoints at a URL."""
    return open_conversations(folder, llm, settings=settings_in(folder, checkpoints=url))


def is_answered(talks: Conversations, name: str) -> bool:
    """Whether a conversation answers its first question; an error must say something."""
    try:
        return talks.conversation(name).ask(CLASS).status == "answered"
    except UserError as error:
        assert len(str(error)) > 30
        return False
