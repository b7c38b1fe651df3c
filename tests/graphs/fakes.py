"""Typed stand-ins for the services of a graph: a retriever over a fixed table, a scripted model; nodes of trees."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.growing_text import Listeners, TextListeners
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions, Message
from judgetree.modules.calls.thinking import ThinkingText
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.reader.prompts import READER_SYSTEM, REFUSAL


def chunk(chunk_id: str, text: str) -> Document:
    return Document(page_content=text, metadata={"chunk_id": chunk_id, "source": f"{chunk_id}.md"})


def thread(thread_id: str) -> RunnableConfig:
    """The config that names a thread."""
    return {"configurable": {"thread_id": thread_id}}


def answered(thread_id: str, query: str, answer: str, *chunks: ChunkNode, **fields: Any) -> QueryNode:
    """A node of a search tree that was answered, unless the fields say otherwise."""
    usual = {"status": "finished", "answer_status": "answered"}
    return QueryNode(thread_id=thread_id, query=query, answer=answer, chunks=chunks, **{**usual, **fields})


class TableRetriever:
    """Finds, for each query, the chunks that a table names; nothing for a query that is not in it."""

    def __init__(self, table: Mapping[str, Sequence[Document]]) -> None:
        self._table = table
        self.queries: list[str] = []

    def fingerprint(self) -> dict[str, str]:
        return {"collection": "table", "content": str(len(self._table))}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        self.queries.append(query)
        return [(found, 1.0 - 0.1 * rank) for rank, found in enumerate(self._table.get(query, ()))]


class FakeLLM:
    """Answers with what ``reply`` returns for the messages, also thinking in ``<think>``; keeps the calls.

    ``ended`` says how the endpoint ended a reply.
    """

    model = "fake"

    def __init__(
        self, reply: Callable[[Sequence[Message]], str], ended: Callable[[str], str] = lambda reply: "stop"
    ) -> None:
        self._reply = reply
        self._ended = ended
        self.calls: list[list[Message]] = []
        self.options: list[CallOptions] = []

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        meter.reserve()
        started = time.perf_counter()
        self.calls.append(list(messages))
        self.options.append(options)
        await asyncio.sleep(0)
        reply, growing, heard = self._reply(messages), ThinkingText(options.stop), Listeners(**listeners)
        for character in reply:
            growing.feed(character)
            heard.add(text=growing.new_answer(), thinking=growing.new_thinking())
        growing.finish()
        heard.settle(text=growing.answer, thinking=growing.thinking)
        completion = Completion(text=growing.answer, thinking=growing.thinking, finish_reason=self._ended(reply))
        meter.record(
            kind="chat",
            model=self.model,
            started=started,
            prompt_tokens=10,
            completion_tokens=2,
            cut_off=completion.is_cut_off,
        )
        return completion


def reader_that_needs(*facts: tuple[str, str]) -> Callable[[Sequence[Message]], str]:
    """A reader that answers with the first answer whose fact stands in the evidence, else refuses."""

    def reply(messages: Sequence[Message]) -> str:
        assert messages[0] == ("system", READER_SYSTEM)
        evidence = messages[1][1]
        return next((answer for fact, answer in facts if fact in evidence), REFUSAL)

    return reply
