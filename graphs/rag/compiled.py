"""The compiled graph over its checkpoints and the journal of its model calls."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import StateGraph

from ...modules.addresses import Address
from ...modules.calls.journal import CallJournal
from ...modules.calls.transcript_writer import ThreadTranscripts, TranscriptWriter
from ..threads.checkpoints import Saver, open_call_journal, open_checkpointer
from ..threads.context import Compiled, RunContext
from ..threads.given_savers import Checkpointer, check_checkpointer, open_given
from ..threads.recording import Recording, open_recorder
from ..threads.state import RagState
from .thread_runs import ThreadKey

Builder = StateGraph[RagState, RunContext, RagState, RagState]


class StoredGraph:
    """A graph that is compiled over its store at the first use; its coroutines run on judgetree's own loop."""

    def __init__(self, builder: Builder, *, name: str, checkpointer: Checkpointer | None) -> None:
        """Keep the arguments; see ``RagGraph``."""
        check_checkpointer(checkpointer)
        self.builder = builder
        self._name = name
        self._checkpointer = Address(checkpointer) if isinstance(checkpointer, str) else checkpointer
        self._compiled: Compiled | None = None
        self._journal: CallJournal | None = None
        self._transcripts: TranscriptWriter | None = None
        self._resources = AsyncExitStack()
        self._opening = asyncio.Lock()

    def compile_alone(self) -> Compiled:
        """Compile the graph without a store."""
        return self.builder.compile(name=self._name)

    async def opened(self, recording: Recording) -> Compiled:
        """Return the graph over its store, which the first call opens, with the recorder of its calls."""
        async with self._opening:
            if self._compiled is None:
                saver = await self._open_saver(recording)
                self._compiled = self.builder.compile(checkpointer=saver, name=self._name)
            return self._compiled

    @property
    def journal(self) -> CallJournal | None:
        """The journal of model calls, once the graph is opened; None without checkpoints."""
        return self._journal

    @property
    def url(self) -> str:
        """The URL of the store; empty for a saver and without checkpoints."""
        return self._checkpointer if isinstance(self._checkpointer, str) else ""

    def transcripts_of(self, root: str, *, owner: str) -> ThreadTranscripts | None:
        """Return the recorder of the calls of a root thread; None where none are recorded, or the store is closed."""
        if self._transcripts is None:
            return None
        return ThreadTranscripts(writer=self._transcripts, root=root, owner=owner)

    def thread_key(self, thread_id: str) -> ThreadKey:
        """Return the key of a thread that is unique among all stores of this process."""
        if isinstance(self._checkpointer, BaseCheckpointSaver):
            return (f"{id(self._checkpointer)}", thread_id)
        shared = isinstance(self._checkpointer, str) and self._checkpointer != "memory:"
        return (str(self._checkpointer) if shared else f"{id(self)}", thread_id)

    async def aclose(self) -> None:
        """Close the store; the next use opens it again."""
        self._compiled = None
        await self._resources.aclose()

    async def _open_saver(self, recording: Recording) -> Saver | None:
        if self._checkpointer is None:
            return None
        url = self._checkpointer if isinstance(self._checkpointer, str) else "memory:"
        self._journal = await self._resources.enter_async_context(open_call_journal(url))
        if not isinstance(self._checkpointer, str):
            return await self._resources.enter_async_context(open_given(self._checkpointer))
        self._transcripts = await self._resources.enter_async_context(open_recorder(recording, self._checkpointer))
        return await self._resources.enter_async_context(open_checkpointer(self._checkpointer))
