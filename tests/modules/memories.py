"""Conversation memories for tests, each in a collection of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from langchain_core.embeddings import Embeddings

from judgetree.modules.index.connection import MilvusConnection
from judgetree.modules.memory.memory import ConversationMemory
from tests.modules.fake_embeddings import BagOfWordsEmbedder


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class OpenMemory(Protocol):
    def __call__(self, embedder: Embeddings | None = None) -> ConversationMemory: ...


@contextmanager
def opened_memories(connection: MilvusConnection, collection: str, clock: Clock) -> Iterator[OpenMemory]:
    """A function that opens one and the same memory, as often as it is called; the collection is dropped at the end."""
    made: list[ConversationMemory] = []

    def open_memory(embedder: Embeddings | None = None) -> ConversationMemory:
        memory = ConversationMemory(
            embedder or BagOfWordsEmbedder(), collection=collection, uri=connection.uri, token="", clock=clock
        )
        made.append(memory)
        return memory

    yield open_memory
    for memory in made:
        memory.close()
    connection.client.drop_collection(collection)


def new_name() -> str:
    return f"test_{uuid.uuid4().hex[:12]}"


def foreign_row(
    key: str, conversation_id: str, query: str, timestamp: str | None = None, **columns: object
) -> dict[str, object]:
    """A row as a program writes it that knows nothing of parents and branches."""
    row = {
        "pk": key,
        "conversation_id": conversation_id,
        "dense": [0.1] * 64,
        "user_query": query,
        "assistant_response": "yes",
    }
    return {**row, **({"timestamp": timestamp} if timestamp else {}), **columns}
