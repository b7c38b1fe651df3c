"""Search trees of the checkpoint store, for servers: found, read and watched without a model or a key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import TypeVar, cast

from ...graphs.conversation.turn.store import conversation_name
from ...graphs.rag.graph import RagGraph
from ...graphs.rag.search_tree import SearchTree
from ...graphs.rag.watching import TreeState, TreeWatch
from ...graphs.systems.registry import find_system
from ...graphs.threads.checkpoints import Saver, store_errors
from ...graphs.tree.history import aread_query, config_of
from ...graphs.tree.nodes import QueryNode
from ...modules.background.closing import closing
from ...modules.background_loop import background_loop
from ...modules.errors import SessionError
from ...modules.settings import Settings
from ..terminal.saved import check_names, may_hold_threads, system_of

T = TypeVar("T")

_FIRST = "judge"
"""System whose graph reads the head of a thread of any system."""


class Demand:
    """Lets a producer on judgetree's loop make the next item only when the consumer, on another loop, wants it."""

    def __init__(self) -> None:
        self._is_wanted = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def supplied(self, items: AsyncIterator[T]) -> AsyncGenerator[T]:
        """Yield the items, each but the first after ``renew``."""
        self._loop = asyncio.get_running_loop()
        async with closing(items):
            async for item in items:
                yield item
                await self._is_wanted.wait()
                self._is_wanted.clear()

    def renew(self) -> None:
        """Ask for the next item, from the consumer's loop."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._is_wanted.set)


@dataclass(frozen=True, kw_only=True)
class TreeThread:
    """The head of a thread that is a search tree, or a sub-run in one."""

    thread_id: str
    parent_thread_id: str
    """``""`` for a root."""
    conversation_id: str
    """Id of the conversation that asked; ``""`` without one."""
    system: str
    """System that wrote it."""


class SavedTrees:
    """The search trees of a checkpoint store, opened at the first read. Its coroutines may be awaited on any loop."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.checkpoint_url
        self._graphs: dict[str, RagGraph] = {}
        self._watches: dict[TreeThread, TreeWatch] = {}
        self._names: dict[str, str] = {}
        """Names of conversations by id."""
        self._opening = asyncio.Lock()
        self._resources = AsyncExitStack()
        self._is_closed = False

    async def find(self, thread_id: str) -> TreeThread | None:
        """Return the head of a search thread; None if no search has this thread, and no store is made."""
        return await background_loop().arun(self._find(thread_id))

    async def conversation_name(self, conversation_id: str) -> str | None:
        """Return the name under which a conversation is kept; None if there is none of this id."""
        return await background_loop().arun(self._conversation_name(conversation_id))

    async def read(self, thread: TreeThread) -> SearchTree:
        """Read the tree below a thread.

        Raises:
            UnknownThread: It was deleted meanwhile.
        """
        with store_errors(self._url):
            return await SearchTree.afrom_history(await self._graph(thread.system), thread.thread_id)

    async def read_query(self, thread: TreeThread) -> QueryNode:
        """Read the query of a thread with its chunks, without its sub-runs.

        Raises:
            UnknownThread: It was deleted meanwhile.
        """
        with store_errors(self._url):
            return await aread_query(await self._graph(thread.system), thread.thread_id)

    async def watch(self, thread: TreeThread) -> AsyncGenerator[TreeState]:
        """Yield the tree below a thread as it is, then its newest state after each change; see ``TreeWatch.states``.

        All who watch a tree share its reading.
        """
        demand = Demand()
        states = background_loop().aiterate(self._states(thread, demand))
        with store_errors(self._url):
            async with aclosing(states):
                async for state in states:
                    yield state
                    demand.renew()

    @property
    def watched(self) -> int:
        """Number of trees that are watched now."""
        return len(self._watches)

    async def aclose(self) -> None:
        """Close the store; watchers end with an error."""
        await background_loop().arun(self._close())

    async def _states(self, thread: TreeThread, demand: Demand) -> AsyncGenerator[TreeState]:
        graph = await self._graph(thread.system)
        watch = self._watches.setdefault(thread, TreeWatch(graph, thread.thread_id))
        try:
            async with aclosing(demand.supplied(watch.states())) as states:
                async for state in states:
                    yield state
        finally:
            if not watch.watchers:
                self._watches.pop(thread, None)

    async def _find(self, thread_id: str) -> TreeThread | None:
        if not await asyncio.to_thread(may_hold_threads, self._url):
            return None
        saver = await self._saver()
        with store_errors(self._url):
            saved = await saver.aget_tuple(config_of(thread_id))
            metadata = cast(Mapping[str, object], saved.metadata) if saved else {}
            root = str(metadata.get("root_thread_id") or "")
            if not (saved and root):  # of a conversation, or of a turn
                return None
            root_saved = saved if root == thread_id else await saver.aget_tuple(config_of(root))
        values = root_saved.checkpoint["channel_values"] if root_saved else {}
        started = values.get("__start__")  # where the input is before the first step
        fingerprint = values.get("fingerprint") or (started or {}).get("fingerprint") or {}
        check_names(self._url, fingerprint)
        return TreeThread(
            thread_id=thread_id,
            parent_thread_id=str(metadata.get("parent_thread_id") or ""),
            conversation_id=str(metadata.get("conversation_id") or ""),
            system=system_of(fingerprint),
        )

    async def _conversation_name(self, conversation_id: str) -> str | None:
        if conversation_id not in self._names:
            with store_errors(self._url):
                name = await conversation_name(await self._saver(), conversation_id)
            if name is None:
                return None
            self._names[conversation_id] = name
        return self._names[conversation_id]

    async def _saver(self) -> Saver:
        saver = await (await self._graph(_FIRST)).aopen_store()
        assert saver is not None, "a graph with a URL has a store"
        return saver

    async def _graph(self, system: str) -> RagGraph:
        """Return the graph of a system, which alone can tell what its threads are about to do."""
        return await background_loop().arun(self._opened(system))

    async def _opened(self, system: str) -> RagGraph:
        async with self._opening:
            if self._is_closed:
                raise SessionError("The server is ending. Send the request again.")
            if system not in self._graphs:
                graph = await asyncio.to_thread(lambda: find_system(system).build(checkpointer=self._url))
                self._resources.push_async_callback(graph.aclose)
                self._graphs[system] = graph
            return self._graphs[system]

    async def _close(self) -> None:
        async with self._opening:
            self._is_closed = True
            self._graphs.clear()
            await self._resources.aclose()
