"""A search graph as a LangChain ``Runnable``, to be called from any thread or event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypedDict, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.schema import StreamEvent
from langgraph.types import StateSnapshot

from ...modules.background.closing import closing
from ...modules.background_loop import async_twin, background_loop, blocking
from ...modules.calls.journal import CallJournal
from ...modules.calls.transcript_writer import ThreadTranscripts
from ...modules.calls.transcripts import TranscriptPlace
from ...modules.errors import DependencyError, ModelCallError, SettingsError
from ...modules.settings import Durability
from ..drawing.picture import SystemPicture
from ..threads.checkpoints import Saver
from ..threads.context import Compiled, RagContext
from ..threads.given_savers import Checkpointer
from ..threads.interrupts import INTERRUPTS, raise_interrupts
from ..threads.recording import Recording
from ..threads.state import RagState
from ..threads.thread_ids import check_search_thread_id, check_thread_id
from .compiled import Builder, StoredGraph
from .preparation import RunRequest, prepare_run, update_thread
from .run_start import Given, Options, Run
from .running_work import RunningWork
from .served import ServedGraph, served_graph
from .thread_runs import ThreadKey, ThreadSummary, list_root_threads, thread_id_in, thread_runs


class GraphOptions(TypedDict, total=False):
    """Keyword arguments of the functions that build a ``RagGraph``, which explains them."""

    checkpointer: Checkpointer | None
    context: RagContext | None
    durability: Durability
    recording: Recording | None


class RagGraph(Runnable[Given, RagState]):
    """A search graph with its checkpoints.

    The input is ``{"query": …}``, the query itself, or None to resume a thread. The thread id stands in
    ``config={"configurable": {"thread_id": …}}``; without one, the run gets a new thread. An open thread is resumed. A
    finished thread is returned without a model call. Another question or other settings on a known thread are refused.

    A node or judge may call LangGraph's ``interrupt``, in sub-runs too. The state that is returned then has the key
    ``__interrupt__``; ``Command(resume=…)`` as the next input gives the answer. No model call is made twice.

    It can be a node of another graph, whose state has the key ``query``, and takes ``answer`` and other keys of
    ``RagState`` if it declares them. Each task of the node is a thread in this graph's own store, whose id the outer
    state may take as ``rag_thread_id``. Interrupts and items of ``subgraphs=True`` pass through the outer graph.

    ::

        with build_naive_rag(checkpointer="sqlite:///trees.sqlite", context=context) as graph:
            state = graph.invoke("Which oil does KS-1 need?", {"configurable": {"thread_id": "oil"}})
    """

    def __init__(
        self,
        builder: Builder,
        *,
        system: str,
        checkpointer: Checkpointer | None = "memory:",
        context: RagContext | None = None,
        durability: Durability = "async",
        recording: Recording | None = None,
    ) -> None:
        """Keep the arguments; the first call opens the store and compiles the graph.

        Args:
            builder: The graph, not compiled.
            system: Name of the system in fingerprints.
            checkpointer: A URL (see ``threads.checkpoints``); a saver of LangGraph such as ``InMemorySaver()``, which
                the caller closes; a function that makes one on judgetree's own loop, as an async saver needs; or None.
            context: Services and limits of calls without a ``context`` of their own.
            durability: When checkpoints are written: every step ("sync", "async") or once a run ("exit").
            recording: Which texts of model calls are kept; None keeps none. Stores in memory keep none.
        """
        self.system = system
        self.source = ""
        self.name = f"{system}_rag"
        self._stored = StoredGraph(builder, name=self.name, checkpointer=checkpointer)
        self._context = context
        self._durability: Durability = durability
        self.recording = recording or Recording(record="none")
        """Which texts of model calls are kept; to be set before the first call."""
        self._running = RunningWork("graph")

    # --- the Runnable interface; every public method may be called from any thread or event loop ---

    @blocking
    async def invoke(
        self,
        input: Given,
        config: RunnableConfig | None = None,
        *,
        context: RagContext | None = None,
        **kwargs: Any,
    ) -> RagState:
        """Run to the end and return the final state.

        Raises:
            ThreadMismatch: The thread holds another question or was run with other settings.
            UnknownThread: ``input`` is None or a ``Command``, and the thread does not exist.
            SettingsError: ``Command(resume=…)`` does not fit the interrupts of the thread.
            ModelCallError: The reader failed after its last attempt; the thread stays open and can be resumed.
            LoopReentryError: Called on judgetree's own loop.
        """
        async with self._started(input, config, context, kwargs) as run:
            if run.finished is not None:
                return run.returned(run.finished)
            graph = run.context.graph
            done = await graph.ainvoke(run.start, run.config, context=run.context, **run.options)
            final = cast(dict[str, object], done)
            if INTERRUPTS not in final:
                await run.forget()
            elif run.outer is not None:
                raise_interrupts(final)
            return run.returned(cast(RagState, final))

    _ainvoke = async_twin(invoke)  # a name that Runnable does not declare: mypy would infer the type from there
    ainvoke = _ainvoke

    @blocking
    async def stream(
        self,
        input: Given,
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
            items = run.context.graph.astream(run.start, run.config, context=run.context, **run.options)
            async with closing(items):
                async for item in items:
                    yield item
            await run.forget_if_finished()

    _astream = async_twin(stream)
    astream = _astream

    async def astream_events(  # type: ignore[override]
        self,
        input: Given,
        config: RunnableConfig | None = None,
        *,
        context: RagContext | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[StreamEvent]:
        """Yield LangChain's events of the run and all its sub-runs, model tokens included."""
        events = background_loop().aiterate(self._astream_events(input, config, context, kwargs))
        async with closing(events):
            async for event in events:
                yield event

    @blocking
    async def get_state(self, config: RunnableConfig) -> StateSnapshot:
        """Return the newest checkpoint of a thread; its ``created_at`` is None if the thread does not exist."""
        check_thread_id(thread_id_in(config))
        return await (await self.aopen()).aget_state(config)

    aget_state = async_twin(get_state)

    @blocking
    async def get_state_history(self, config: RunnableConfig, **kwargs: Any) -> AsyncIterator[StateSnapshot]:
        """Yield the checkpoints of a thread, newest first."""
        check_thread_id(thread_id_in(config))
        async with closing((await self.aopen()).aget_state_history(config, **kwargs)) as snapshots:
            async for snapshot in snapshots:
                yield snapshot

    aget_state_history = async_twin(get_state_history)

    @blocking
    async def update_state(
        self,
        config: RunnableConfig,
        values: Mapping[str, object] | None,
        as_node: str | None = None,
        *,
        context: RagContext | None = None,
    ) -> RunnableConfig:
        """Write values into a thread as if ``as_node``, or else its last node, had returned them.

        The next call with None goes on after that node. Returns the config of the new checkpoint. Routes after the node
        have the limits of ``context``, or of the builder's.

        Raises:
            SettingsError: The thread id cannot be kept, or there is no context.
            InvalidUpdateError: ``as_node`` is no node, or is needed to tell who wrote last.
        """
        check_search_thread_id(thread_id_in(config))
        return await update_thread(await self.aopen(), config, values, as_node, self._services(context))

    aupdate_state = async_twin(update_state)

    @blocking
    async def list_threads(self, limit: int = 100) -> list[ThreadSummary]:
        """List the root threads of the store, newest first; at most ``limit``."""
        return await list_root_threads(graph, limit) if (graph := await self.aopen()).checkpointer else []

    alist_threads = async_twin(list_threads)

    async def aopen_store(self) -> Saver | None:
        """Return the open store, for use on judgetree's own loop until ``aclose``; None without checkpoints."""
        return cast("Saver | None", (await self.aopen()).checkpointer)

    @blocking
    async def close(self) -> None:
        """Close the store; the next call opens it again. Running questions end with a ``SessionError``."""
        if self._running.is_of_another_process:
            return
        await self._running.end()
        await self._stored.aclose()

    aclose = async_twin(close)

    def __enter__(self) -> RagGraph:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return nodes and edges for drawing: ``draw_mermaid()``, ``draw_mermaid_png()``. No store is opened.

        ``xray`` shows the inside of nodes that are graphs, so many levels deep. Sub-runs of the judge graph are runs of
        the whole graph, and no level.
        """
        drawn = self._stored.compile_alone().get_graph(config, xray=xray)
        return SystemPicture(nodes=drawn.nodes, edges=drawn.edges)

    def as_state_graph(self, context: RagContext | None = None) -> ServedGraph:
        """Return a plain compiled graph of LangGraph, which runs on the loop and with the checkpoints of its caller.

        For ``langgraph.json``, and for other graphs that shall hold its steps in their own store. Sub-runs are
        subgraphs there, so that ``SearchTree`` does not find them. Without a call journal, a step that is run again
        pays again.

        Args:
            context: Services and limits; None takes the builder's. They are used on the caller's loop.
        """
        inner, services = self._stored.compile_alone(), self._services(context)
        name, limits = services.policy.fingerprint().get("name"), services.limits
        if (name, limits.width, limits.sharing) != ("breadth", None, "off"):
            raise SettingsError(
                f"policy={name!r}, width={limits.width}, sharing={limits.sharing!r} need threads of their own for sub-"
                "runs. In the checkpoints of another graph, policy='breadth', width=None, sharing='off' run."
            )
        return served_graph(inner, services, system=self.system, source=self.source)

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        """Show the picture of nodes and edges in a notebook; only the name where no Graphviz is installed."""
        with suppress(DependencyError):
            return {"text/plain": repr(self), "image/png": self.get_graph(xray=True).draw_mermaid_png()}
        return {"text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.system!r})"

    # --- on the loop ---

    async def aopen(self) -> Compiled:
        """Return the compiled graph over its open store, for use on judgetree's own loop until ``aclose``."""
        self._running.check_process()
        return await self._stored.opened(self.recording)

    async def aopen_journal(self) -> CallJournal | None:
        """Return the journal of model calls, for use on judgetree's own loop; None for a store in memory."""
        await self.aopen()
        return self._stored.journal

    @property
    def transcripts(self) -> TranscriptPlace | None:
        """Where the transcripts of this store's calls are, recorded now or before; None for a store in memory."""
        return self.recording.place_for(self._stored.url)

    def transcripts_of(self, root: str, *, owner: str) -> ThreadTranscripts | None:
        """Return the recorder of the calls of a root thread; None where none are recorded, or the store is closed.

        Another ``owner`` than the thread itself is a conversation.
        """
        if owner != root and not self.recording.conversations:
            return None
        return self._stored.transcripts_of(root, owner=owner)

    def thread_key(self, thread_id: str) -> ThreadKey:
        """Return the key of a thread that is unique among all stores of this process."""
        return self._stored.thread_key(thread_id)

    async def _astream_events(
        self, given: Given, config: RunnableConfig | None, context: RagContext | None, options: Options
    ) -> AsyncIterator[StreamEvent]:
        async with self._started(given, config, context, options) as run:
            if run.finished is not None:
                return
            events = run.context.graph.astream_events(run.start, run.config, context=run.context, **run.options)
            async with closing(events):
                async for event in events:
                    yield event
            await run.forget_if_finished()

    @asynccontextmanager
    async def _started(
        self,
        given: Given,
        config: RunnableConfig | None,
        context: RagContext | None,
        options: Options,
        *,
        streams: bool = False,
    ) -> AsyncIterator[Run]:
        """Yield the prepared run while holding its thread's lease."""
        services = self._services(context)
        asked = RunRequest.of(given, config or {}, services, options, streams=streams)
        check_search_thread_id(thread_id_in(asked.config))
        async with self._running.entered(), thread_runs().leased(self.thread_key(asked.thread_id)) as lease:
            graph = await self.aopen()
            run = await prepare_run(
                asked,
                graph,
                self._stored.journal,
                self.transcripts_of(asked.thread_id, owner=asked.conversation_id or asked.thread_id),
                system=self.system,
                source=self.source,
                durability=self._durability,
            )
            if run.finished is None:
                lease.check()
            await run.forget_left()
            try:
                yield run
            except ModelCallError as failure:
                lease.fail(failure)
                raise
            finally:
                await run.flush()

    def _services(self, given: RagContext | None) -> RagContext:
        services = given or self._context
        if services is None:
            raise SettingsError("No services: give context=RagContext(…) to this call or to the graph's builder.")
        return services
