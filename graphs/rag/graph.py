"""A search graph as a LangChain ``Runnable``, to be called from any thread or event loop."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, TypedDict, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.schema import StreamEvent
from langgraph.graph.state import StateGraph
from langgraph.types import StateSnapshot

from ...modules.addresses import Address
from ...modules.background_loop import async_twin, background_loop, blocking
from ...modules.calls.journal import CallJournal, forget_calls, thread_calls
from ...modules.calls.record import INTERRUPTED
from ...modules.calls.transcript_writer import ThreadTranscripts, TranscriptWriter
from ...modules.calls.transcripts import TranscriptPlace
from ...modules.calls.usage import CallBudget
from ...modules.errors import ModelCallError, SettingsError
from ...modules.settings import Durability
from ..threads.checkpoints import Saver, open_call_journal, open_checkpointer
from ..threads.context import Compiled, RagContext, RunContext
from ..threads.fingerprint import digest_of, fingerprint_of, refuse_mismatch
from ..threads.recording import Recording, open_recorder
from ..threads.snapshots import is_finished, is_new_thread
from ..threads.state import RagState
from .run_start import Options, RagInput, Run, extra_inputs_of, start_of
from .running_work import RunningWork
from .search_tree import SearchTree
from .thread_runs import ThreadKey, ThreadSummary, check_thread, list_root_threads, thread_runs

CheckpointerFactory = Callable[[], AbstractAsyncContextManager[Saver]]


class GraphOptions(TypedDict, total=False):
    """Keyword arguments of the functions that build a ``RagGraph``, which explains them."""

    checkpointer: str | CheckpointerFactory | None
    context: RagContext | None
    durability: Durability
    recording: Recording | None


class RagGraph(Runnable[RagInput | str | None, RagState]):
    """A search graph with its checkpoints.

    The input is ``{"query": …}``, the query itself, or None to resume a thread. The thread id stands in
    ``config={"configurable": {"thread_id": …}}``; without one, the run gets a new thread. An open thread is resumed. A
    finished thread is returned without a model call. Another question or other settings on a known thread are refused.

    ::

        with build_naive_rag(checkpointer="sqlite:///trees.sqlite", context=context) as graph:
            state = graph.invoke("Which oil does KS-1 need?", {"configurable": {"thread_id": "oil"}})
    """

    def __init__(
        self,
        builder: StateGraph[RagState, RunContext, RagState, RagState],
        *,
        system: str,
        checkpointer: str | CheckpointerFactory | None = "memory:",
        context: RagContext | None = None,
        durability: Durability = "async",
        recording: Recording | None = None,
    ) -> None:
        """Keep the arguments; the first call opens the store and compiles the graph.

        Args:
            builder: The graph, not compiled.
            system: Name of the system in fingerprints.
            checkpointer: A URL (see ``threads.checkpoints``), a factory for judgetree's own loop, or None.
            context: Services and limits of calls without a ``context`` of their own.
            durability: When checkpoints are written: every step ("sync", "async") or once a run ("exit").
            recording: Which texts of model calls are kept; None keeps none. Stores in memory keep none.
        """
        self.system = system
        self.source = ""
        self.name = f"{system}_rag"
        self._builder = builder
        self._checkpointer = Address(checkpointer) if isinstance(checkpointer, str) else checkpointer
        self._context = context
        self._durability: Durability = durability
        self._compiled: Compiled | None = None
        self.recording = recording or Recording(record="none")
        """Which texts of model calls are kept; to be set before the first call."""
        self._journal: CallJournal | None = None
        self._transcripts: TranscriptWriter | None = None
        self._resources = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._running = RunningWork("graph")

    # --- the Runnable interface; every public method may be called from any thread or event loop ---

    @blocking
    async def invoke(
        self,
        input: RagInput | str | None,
        config: RunnableConfig | None = None,
        *,
        context: RagContext | None = None,
        **kwargs: Any,
    ) -> RagState:
        """Run to the end and return the final state.

        Raises:
            ThreadMismatch: The thread holds another question or was run with other settings.
            UnknownThread: ``input`` is None and the thread does not exist.
            ModelCallError: The reader failed after its last attempt; the thread stays open and can be resumed.
            LoopReentryError: Called on judgetree's own loop.
        """
        async with self._started(input, config, context, kwargs) as run:
            if run.finished is not None:
                return run.finished
            graph = run.context.graph
            return cast(RagState, await graph.ainvoke(run.start, run.config, context=run.context, **run.options))

    _ainvoke = async_twin(invoke)  # a name that Runnable does not declare: mypy would infer the type from there
    ainvoke = _ainvoke

    @blocking
    async def stream(
        self,
        input: RagInput | str | None,
        config: RunnableConfig | None = None,
        *,
        context: RagContext | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Yield the items that LangGraph streams in ``stream_mode``; "custom" includes the live events of sub-runs."""
        async with self._started(input, config, context, kwargs, streams=True) as run:
            if run.finished is not None:
                if kwargs.get("stream_mode", "values") == "values":
                    yield run.finished
                return
            async for item in run.context.graph.astream(run.start, run.config, context=run.context, **run.options):
                yield item

    _astream = async_twin(stream)
    astream = _astream

    async def astream_events(  # type: ignore[override]
        self,
        input: RagInput | str | None,
        config: RunnableConfig | None = None,
        *,
        context: RagContext | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[StreamEvent]:
        """Yield LangChain's events of the run and all its sub-runs, model tokens included."""
        events = background_loop().aiterate(self._astream_events(input, config, context, kwargs))
        async with aclosing(events):
            async for event in events:
                yield event

    @blocking
    async def get_state(self, config: RunnableConfig) -> StateSnapshot:
        """Return the newest checkpoint of a thread; its ``created_at`` is None if the thread does not exist."""
        check_thread(config)
        return await (await self._graph()).aget_state(config)

    aget_state = async_twin(get_state)

    @blocking
    async def get_state_history(self, config: RunnableConfig, **kwargs: Any) -> AsyncIterator[StateSnapshot]:
        """Yield the checkpoints of a thread, newest first."""
        check_thread(config)
        async for snapshot in (await self._graph()).aget_state_history(config, **kwargs):
            yield snapshot

    aget_state_history = async_twin(get_state_history)

    @blocking
    async def list_threads(self, limit: int = 100) -> list[ThreadSummary]:
        """List the root threads of the store, newest first; at most ``limit``."""
        return await list_root_threads(graph, limit) if (graph := await self._graph()).checkpointer else []

    alist_threads = async_twin(list_threads)

    async def aopen_store(self) -> Saver | None:
        """Return the open store, for use on judgetree's own loop until ``aclose``; None without checkpoints."""
        return cast("Saver | None", (await self._graph()).checkpointer)

    @blocking
    async def close(self) -> None:
        """Close the store; the next call opens it again. Running questions end with a ``SessionError``."""
        if self._running.is_of_another_process:
            return
        await self._running.end()
        self._compiled = None
        await self._resources.aclose()

    aclose = async_twin(close)

    def __enter__(self) -> RagGraph:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # --- on the loop ---

    async def _graph(self) -> Compiled:
        self._running.check_process()
        async with self._opening:
            if self._compiled is None:
                saver = await self._open_saver()
                self._compiled = self._builder.compile(checkpointer=saver, name=self.name)
            return self._compiled

    async def _open_saver(self) -> Saver | None:
        if self._checkpointer is None:
            return None
        if not isinstance(self._checkpointer, str):
            return await self._resources.enter_async_context(self._checkpointer())
        self._journal = await self._resources.enter_async_context(open_call_journal(self._checkpointer))
        self._transcripts = await self._resources.enter_async_context(open_recorder(self.recording, self._checkpointer))
        return await self._resources.enter_async_context(open_checkpointer(self._checkpointer))

    async def aopen_journal(self) -> CallJournal | None:
        """Return the journal of model calls, for use on judgetree's own loop; None for a store in memory."""
        await self._graph()
        return self._journal

    @property
    def transcripts(self) -> TranscriptPlace | None:
        """Where the transcripts of this store's calls are, recorded now or before; None for a store in memory."""
        return self.recording.place_for(self._checkpointer if isinstance(self._checkpointer, str) else "")

    def transcripts_of(self, root: str, *, owner: str) -> ThreadTranscripts | None:
        """Return the recorder of the calls of a root thread; None where none are recorded, or the store is closed.

        Another ``owner`` than the thread itself is a conversation.
        """
        if self._transcripts is None or (owner != root and not self.recording.conversations):
            return None
        return ThreadTranscripts(writer=self._transcripts, root=root, owner=owner)

    def thread_key(self, thread_id: str) -> ThreadKey:
        """Return the key of a thread that is unique among all stores of this process."""
        shared = isinstance(self._checkpointer, str) and self._checkpointer != "memory:"
        return (str(self._checkpointer) if shared else f"{id(self)}", thread_id)

    async def _astream_events(
        self, given: RagInput | str | None, config: RunnableConfig | None, context: RagContext | None, options: Options
    ) -> AsyncIterator[StreamEvent]:
        async with self._started(given, config, context, options) as run:
            if run.finished is not None:
                return
            events = run.context.graph.astream_events(run.start, run.config, context=run.context, **run.options)
            async for event in events:
                yield event

    @asynccontextmanager
    async def _started(
        self,
        given: RagInput | str | None,
        config: RunnableConfig | None,
        context: RagContext | None,
        options: Options,
        *,
        streams: bool = False,
    ) -> AsyncIterator[Run]:
        """Yield the prepared run while holding its thread's lease."""
        base = config or {}
        is_new = not base.get("configurable", {}).get("thread_id")
        thread_id = str(uuid.uuid4() if is_new else base["configurable"]["thread_id"])
        base = {**base, "configurable": {**base.get("configurable", {}), "thread_id": thread_id}}
        check_thread(base)
        async with self._running.entered(), thread_runs().leased(self.thread_key(thread_id)) as lease:
            run = await self._prepare(given, base, context, options, is_new=is_new, streams=streams)
            if run.finished is None:
                lease.check()
            try:
                yield run
            except ModelCallError as failure:
                lease.fail(failure)
                raise
            finally:
                # Before the journal forgets the calls: a killed process could not take them from there any more.
                if run.context.calls is not None and run.context.calls.transcripts is not None:
                    await run.context.calls.transcripts.flush()
            if run.finished is None:
                await forget_calls(run.context.calls)

    # --- preparing a run ---

    async def _prepare(
        self,
        given: RagInput | str | None,
        base: RunnableConfig,
        services: RagContext | None,
        options: Options,
        *,
        is_new: bool,
        streams: bool,
    ) -> Run:
        services = services or self._context
        if services is None:
            raise SettingsError("No services: give context=RagContext(…) to this call or to the graph's builder.")
        graph, thread_id = await self._graph(), str(base["configurable"]["thread_id"])
        snapshot = await graph.aget_state(base) if graph.checkpointer else None
        known = None if snapshot is None or is_new_thread(snapshot) else snapshot
        start = start_of(given, thread_id, known)
        repeat = int(base["configurable"].get("repeat", 0))
        fingerprint = await asyncio.to_thread(
            fingerprint_of,
            query=start["query"],
            system=self.system,
            source=self.source,
            services=services,
            repeat=repeat,
            extra=extra_inputs_of(given, start, known),
        )
        if known is not None:
            refuse_mismatch(thread_id, known.values.get("fingerprint") or {}, fingerprint)
        durability: Durability = options.get("durability") or self._durability
        conversation_id = str(base["configurable"].get("conversation_id", ""))
        transcripts = self.transcripts_of(thread_id, owner=conversation_id or thread_id)
        calls = await thread_calls(self._journal, thread_id, is_new=is_new, transcripts=transcripts)
        context = RunContext(
            services=services,
            budget=CallBudget(limit=services.limits.max_llm_calls),
            graph=graph,
            fingerprint=digest_of(fingerprint),
            durability=durability,
            thread_id=thread_id,
            root_thread_id=thread_id,
            conversation_id=conversation_id,
            stream_answer=streams and "custom" in options.get("stream_mode", ()),
            calls=calls,
        )
        made = await self._calls_made(thread_id) if known is not None else set()
        context.budget.used = len(made | (calls.known_ids if calls else set()))
        context.budget.hold(thread_id)
        return Run(
            context=context,
            config={**base, "metadata": {**base.get("metadata", {}), **context.metadata()}},
            options={**options, "durability": durability if graph.checkpointer else None},
            start=cast(RagState, {**start, "fingerprint": fingerprint}) if known is None else None,
            finished=cast(RagState, known.values) if known is not None and is_finished(known) else None,
        )

    async def _calls_made(self, thread_id: str) -> set[str]:
        tree = await SearchTree.afrom_history(self, thread_id)
        records = (record for node in tree.query_nodes() for record in node.usage)
        # Cached calls count, since each used a place in the budget. An interrupted call counts when it is made again.
        return {record["call_id"] for record in records if record["kind"] == "chat" and record["error"] != INTERRUPTED}
