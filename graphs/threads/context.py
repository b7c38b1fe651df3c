"""What nodes need besides the state, none of which is saved: services, limits, their run and its live events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from langchain_core.documents import Document
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from ...modules.calls.journal import ThreadCalls
from ...modules.calls.usage import CallBudget, CallMeter
from ...modules.judge.contract import Judge
from ...modules.llm.endpoint import ChatLLM
from ...modules.reader.strategies import AnswerStrategy
from ...modules.settings import Durability
from .branches import Branches
from .state import JsonScalar, RagState


def emit(runtime: Runtime[RunContext], event: str, *, node: str, **details: object) -> None:
    """Send one event; without a listener it costs next to nothing.

    A sub-run has no stream of its own that anybody reads, so its events go to the root's.
    """
    context = runtime.context
    write = context.emit_to or runtime.stream_writer
    write(
        {
            "event": event,
            "node": node,
            "thread_id": context.thread_id,
            "parent_thread_id": context.parent_thread_id,
            "root_thread_id": context.root_thread_id,
            "depth": context.depth,
            **details,
        }
    )


Compiled = CompiledStateGraph[RagState, "RunContext", RagState, RagState]

RunEvent = Mapping[str, object]
"""A live event: ``event``, ``node``, ``thread_id``, ``parent_thread_id``, ``root_thread_id``, ``depth`` and more."""


class ChunkRetriever(Protocol):
    """Finds chunks for a query; ``modules.retriever.retriever.Retriever`` is one."""

    def fingerprint(self) -> dict[str, str]:
        """Everything that changes what is found, the collection's content digest included."""
        ...

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        """(chunk, retrieval score), best first; the chunk's metadata holds ``chunk_id`` and ``source``."""
        ...


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far one question may go."""

    max_rec_depth: int = 3
    """Levels below the root, or rounds after the first; 0 judges but never asks on."""
    max_llm_calls: int = 60
    """Chat calls of the whole tree, answers included."""
    judge_leaves: bool = True
    """Judge the chunks of the deepest level too, so that the reader gets only what helps."""


@dataclass(frozen=True, kw_only=True)
class RagContext:
    """The services of a graph, and its limits."""

    reader: ChatLLM
    retriever: ChunkRetriever | None = None
    """Only the closed-book graph does without."""
    judge: Judge | None = None
    """Only the judge graph needs one."""
    limits: Limits = field(default_factory=Limits)
    context_tokens: int | None = None
    """Tokens that a prompt of the reader may have: evidence over half of them is digested before it is read. None: it
    is read as it is."""
    strategy: AnswerStrategy = "stuff"
    """How the reader takes in its evidence, in sub-runs too; the closed-book graph has none."""


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """What the nodes of one thread see: the services, and which thread of which tree they work for."""

    services: RagContext
    budget: CallBudget
    graph: Compiled
    """The compiled graph itself, for sub-runs."""
    fingerprint: str
    """Digest of the root's fingerprint."""
    durability: Durability
    thread_id: str
    root_thread_id: str
    parent_thread_id: str = ""
    conversation_id: str = ""
    depth: int = 0
    stream_answer: bool = False
    """Emit the root's answer as it grows."""
    branches: Branches = field(default_factory=Branches)
    """Those of this thread alone."""
    calls: ThreadCalls | None = None
    """The journal of the thread's model calls; None where checkpoints do not outlive the process."""
    emit_to: Callable[[RunEvent], None] | None = None
    """Where sub-runs send their events; None in the root, which has a stream of its own."""

    def metadata(self) -> dict[str, JsonScalar]:
        """What is saved beside every checkpoint of this thread."""
        return {
            "thread_id": self.thread_id,
            "parent_thread_id": self.parent_thread_id,
            "root_thread_id": self.root_thread_id,
            "conversation_id": self.conversation_id,
            "depth": self.depth,
            "fingerprint": self.fingerprint,
        }
