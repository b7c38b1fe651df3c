"""A session: collection, models and graph, opened once for several questions and conversations."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Interrupt

from ..modules.background.closing import closing
from ..modules.background_loop import async_twin, blocking
from ..modules.calls.usage import CallRecord, total_usage
from ..modules.config.completion import completes
from ..modules.errors import JudgetreeError, ModelCallError, SettingsError, UnknownThread, UserError
from ..modules.index.schema import check_not_reserved
from ..modules.llm.call_gate import CallGate
from ..modules.llm.contract import ChatLLM
from ..modules.progress import StageProgress
from ..modules.prompts.reading import load_prompts
from ..modules.retriever.own import check_beside, needs_index
from ..modules.settings import Settings, load_settings
from .config.given_keys import GivenKeys
from .config.rag_config import RagConfig
from .conversation.conversation import Conversation
from .conversation.services import ConversationServices
from .conversation.turn.context import ConversationOptions
from .forks.session import TreeSession
from .rag.model_calls import ModelCalls
from .rag.result import RagResult
from .rag.running_work import RunningWork
from .rag.search_tree import SearchTree
from .rag.telemetry import TelemetrySender
from .services import SessionServices
from .systems.registry import GraphBuilder, find_system
from .threads.checkpoints import locks_of
from .threads.context import RagContext, RunEvent
from .threads.interrupts import format_waiting, interrupts_in
from .threads.named_failures import NamesThread
from .threads.overrides import GivenLLM
from .threads.recording import Recording
from .threads.snapshots import NewThreadId, is_new_thread

logger = logging.getLogger(__name__)


class RagSession(TreeSession):
    """Answers questions over one collection; opened at the first question, freed by ``close``.

    An open session locks its Milvus Lite folder: use it in a ``with`` statement. All methods may be called from any
    thread, notebook cell or event loop, several at a time.

    ::

        with RagSession("standards", system="judge", topk=3) as session:
            print(session.ask("How long is the pressure held?").answer)

    Args:
        collection: Name of the collection; not needed for ``system="llm"``, nor beside a ``retriever``.
        config: What decides the answers; None for the defaults.
        system: "judge", "naive" (retrieve and answer), "llm" (closed book), or a baseline that searches in rounds:
            "ircot", "iter_retgen", "self_ask", "react", "search_r1", "crag". Or one of your own: ``module:name`` of a
            ``GraphBuilder``, a plug-in's name, or the builder itself.
        context: Services to use instead of those that keys and settings describe.
        settings: None reads environment and ``.env``. Models and prompts of the keys win.
        recording: Which texts of model calls are kept, and where; None goes by the settings.
        on_progress: Called with (done, total, stage) while a local model is downloaded and started.
        gate: Cap on model calls at once that several sessions share; None makes one of ``settings.max_concurrency``.
        **keys: Keys of ``RagConfig``, which win over those of ``config``; ``judgetree config`` lists them. ``llm``,
            ``judge_llm``, ``judge``, ``policy``, ``retriever``, ``rerank``, ``insert_block_llm`` and ``tools`` may also
            be objects: a ``ChatLLM`` or a model of LangChain, a ``Judge``, a ``Policy``, a retriever (see
            ``retriever.own``), tools of LangChain; or a class or function that makes one.
    """

    @completes(RagConfig)
    def __init__(
        self,
        collection: str = "",
        config: RagConfig | None = None,
        *,
        system: str | GraphBuilder = "judge",
        context: RagContext | None = None,
        settings: Settings | None = None,
        recording: Recording | None = None,
        on_progress: StageProgress | None = None,
        gate: CallGate | None = None,
        **keys: object,
    ) -> None:
        chosen = find_system(system)
        given = GivenKeys.of(config, keys, where="The session")
        given.refuse_unused(str(system), chosen.has)
        self.retriever = given["retriever"]
        """What is searched in place of the collection, as it was given; None for nothing."""
        check_beside(self.retriever, given.config, collection=collection)
        has_to_search = context is None and chosen.retrieves and (self.retriever is None or needs_index(self.retriever))
        if not collection and has_to_search:
            raise SettingsError(f"The system {system!r} retrieves: name a collection.")
        if context is not None:
            given.refuse_beside_context()
        self.settings = given.config.applied_to(settings or load_settings())
        if collection:
            check_not_reserved(collection, self.settings)
        own = given.config.prompts
        self.prompts = context.prompts if context else load_prompts(self.settings.prompts) if own is None else own
        """The prompts of one's own, by name."""
        self.collection = collection
        self._services = SessionServices(
            collection=collection,
            system=chosen,
            keys=given,
            prompts=self.prompts,
            context=context,
            settings=self.settings,
            on_progress=on_progress,
            gate=gate,
        )
        self._given, self._has = given, chosen.has
        self._remarks: set[str] = set()
        self._running = RunningWork("session")
        self._locks = locks_of(self.settings.checkpoint_url)
        self._sender: TelemetrySender | None = None
        self.graph = chosen.build(
            checkpointer=self.settings.checkpoint_url,
            durability=self.settings.durability,
            recording=recording or Recording.of(self.settings),
        )
        self.system = self.graph.system
        self._conversations = ConversationServices(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @blocking
    async def ask(
        self,
        question: str | Command[Any] | None = None,
        *,
        thread_id: str | None = None,
        resume: bool = False,
        repeat: int = 0,
        on_event: Callable[[RunEvent], None] | None = None,
        **keys: object,
    ) -> RagResult:
        """Answer one question. If the model fails, the result has status "failed" and the thread can be resumed.

        Where a node or judge calls LangGraph's ``interrupt``, the status is "interrupted".

        Args:
            question: The question; None takes the thread's own and needs ``thread_id``, as does LangGraph's
                ``Command(resume=…)``, which answers an interrupt.
            thread_id: Thread of the run; None makes a new one. An open thread is resumed, a finished one is returned
                without a model call. If this process is running the thread already, ``ask`` waits for its result.
            resume: Refuse a thread that does not exist.
            repeat: Number that distinguishes repeats of one question in fingerprints.
            on_event: Called, on judgetree's own thread, with each live event of the run and its sub-runs.
            **keys: What this question has otherwise than the session: llm, topk, rerank, max_llm_calls, …

        Raises:
            UserError: The settings, collection, thread, API key or model name need a correction.
            SessionError: The session was closed during the question, or was opened before the process was forked.
            LoopReentryError: Called from judgetree's own loop; use ``aask`` there.
        """
        started = time.perf_counter()
        continues = resume or not isinstance(question, str)
        if not isinstance(question, str | Command | None):
            raise SettingsError(f"{question!r:.80} is no question. Give a text, or Command(resume=…).")
        if not thread_id and continues:
            raise UnknownThread("No thread to resume: give a question, or the thread_id of a thread that exists.")
        is_new, thread_id = not thread_id, thread_id or str(uuid.uuid4())
        async with self._running.entered(), NamesThread(thread_id) as failures, self._alone(thread_id) as lease:
            known = None if is_new else await self._calls_of(thread_id)
            before = set() if is_new else (known or set()) | set(await self._journaled(thread_id))
            if known is None and continues:
                raise UnknownThread(f"Thread {thread_id!r} does not exist. Give a question without resume to start it.")
            named = NewThreadId(thread_id) if is_new else thread_id
            config: RunnableConfig = {"configurable": {"thread_id": named, "repeat": repeat}}
            context, error = await self.open_services(GivenKeys.of_question(keys)), ""
            sender = self.open_sender()  # a missing extra is reported before the question is paid for
            interrupts: tuple[Interrupt, ...] = ()
            try:
                lease.check()
                failures.has_begun = True
                interrupts = await self._run(question, config, context, on_event)
            except JudgetreeError as failure:
                if isinstance(failure, ModelCallError):
                    lease.fail(failure)
                if isinstance(failure, UserError):
                    raise
                error = str(failure)
            waiting = error or format_waiting(interrupts)
            result = await self._result(thread_id, before, waiting, interrupts, started)
            if sender is not None:
                sender.send(result.tree)
            return result

    aask = async_twin(ask)

    def chat(self, name: str, *, options: ConversationOptions | None = None) -> Conversation:
        """Return the new or existing conversation of a name, for questions that follow each other.

        Its turns search with the session's collection, models and limits, and are kept in its store; nothing is read
        or written yet. ``Conversations`` lists and deletes conversations.

        ::

            monday = session.chat("monday")
            print(monday.ask("Which gasket seals a Rating F40 flange?"))
            print(monday.ask("And how hot may it become?"))

        Args:
            name: A name that is unique within the checkpoint store.
            options: How the turns are answered.

        Raises:
            SettingsError: The name is empty, or ``web_or_rag`` is asked for without a web search.
        """
        return Conversation(self._conversations, name, options or ConversationOptions())

    @blocking
    async def calls(self, thread_id: str) -> ModelCalls:
        """Return the model calls of a thread and its sub-runs, with what was sent and what came, as far as recorded.

        Raises:
            UnknownThread: The thread does not exist.
        """
        return await asyncio.to_thread((await SearchTree.afrom_history(self.graph, thread_id)).calls)

    acalls = async_twin(calls)

    @blocking
    async def close(self) -> None:
        """Close the checkpoints and free the collection; the next question opens them again.

        Running questions end with a ``SessionError``.
        """
        if self._running.is_of_another_process or self._conversations.is_of_another_process:
            return
        await self._running.end()
        await self._conversations.close()
        await self._locks.aclose()
        await self.graph.aclose()
        sender, self._sender = self._sender, None
        if sender is not None:
            await asyncio.to_thread(sender.close)
        await self._services.close()

    aclose = async_twin(close)

    async def _result(
        self, thread_id: str, before: set[str], error: str, interrupts: tuple[Interrupt, ...], started: float
    ) -> RagResult:
        tree = await SearchTree.afrom_history(self.graph, thread_id)
        if not (error or interrupts or tree.root.answer or tree.root.answer_status):
            error = f"The system {self.system!r} ended without an answer: no node set answer and answer_status."
        in_tree = {record["call_id"]: record for node in tree.query_nodes() for record in node.paid}
        # Calls of a node that has not ended are in the journal alone; that of a finished thread is empty.
        paid = {**(await self._journaled(thread_id) if error or interrupts else {}), **in_tree}
        return RagResult(
            answer="" if error else tree.root.answer,
            status="interrupted" if interrupts else "failed" if error else tree.root.answer_status or "failed",
            thread_id=thread_id,
            system=self.system,
            tree=tree,
            usage=total_usage(paid.values()),
            usage_this_run=total_usage(record for call_id, record in paid.items() if call_id not in before),
            wall_s=time.perf_counter() - started,
            error=error,
            interrupts=interrupts,
        )

    async def _run(
        self,
        question: str | Command[Any] | None,
        config: RunnableConfig,
        context: RagContext,
        on_event: Callable[[RunEvent], None] | None,
    ) -> tuple[Interrupt, ...]:
        """Run to the end, or to the interrupts that are returned."""
        if on_event is None:
            return interrupts_in(await self.graph.ainvoke(question, config, context=context))
        async with closing(self.graph.astream(question, config, context=context, stream_mode="custom")) as events:
            async for event in events:
                on_event(event)
        return (await self.graph.aget_state(config)).interrupts

    async def _calls_of(self, thread_id: str) -> set[str] | None:
        """Return the ids of the model calls in the thread's tree; None for a new thread."""
        if is_new_thread(await self.graph.aget_state({"configurable": {"thread_id": thread_id}})):
            return None
        tree = await SearchTree.afrom_history(self.graph, thread_id)
        return {record["call_id"] for node in tree.query_nodes() for record in node.usage}

    async def _journaled(self, thread_id: str) -> dict[str, CallRecord]:
        """Return the journal's model calls by id, which may not be in checkpoints yet."""
        journal = await self.graph.aopen_journal()
        calls = await journal.calls_of(thread_id) if journal else {}
        return {record["call_id"]: record for call in calls.values() for record in call.records}

    async def open_services(self, overrides: GivenKeys | None = None) -> RagContext:
        """Return the services, opened at the first call. Await it on judgetree's own loop.

        ``overrides`` are those of one question; of a key that has no effect on it a warning is logged, once.

        Raises:
            UserError: See ``ask``.
        """
        for remark in self._given.without_effect(self._has, overrides) if overrides is not None else ():
            if remark not in self._remarks:
                self._remarks.add(remark)
                logger.warning(remark)
        return await self._services.open(overrides)

    async def open_llm(self, given: GivenLLM) -> ChatLLM:
        """Return a model, that of a spec with temperature and thinking of the settings; opened at its first call.

        Raises:
            UserError: The model cannot be created, as in ``create_llm``, or is none.
        """
        return await self._services.open_llm(given)

    def open_sender(self) -> TelemetrySender | None:
        """Return the sender of traces, opened at the first call; None if the settings switch traces off.

        Raises:
            DependencyError: The extra ``telemetry`` is not installed.
        """
        if self._sender is None and self.settings.telemetry == "otlp":
            self._sender = TelemetrySender()
        return self._sender
