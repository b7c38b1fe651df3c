"""A session: collection, models and graph, opened once for several questions and conversations."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Self, Unpack, get_args

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.types import Command, Interrupt

from ..modules.background_loop import async_twin, blocking
from ..modules.calls.usage import CallRecord, total_usage
from ..modules.errors import JudgetreeError, ModelCallError, SettingsError, UnknownThread, UserError
from ..modules.index.schema import refuse_reserved
from ..modules.llm.call_gate import CallGate
from ..modules.llm.contract import ChatLLM
from ..modules.llm.langchain_chat import LangChainModel
from ..modules.prompts.reading import GivenPrompts, load_prompts
from ..modules.reader.evidence_choice import EvidenceChoice, EvidenceKind
from ..modules.reader.evidence_selection import EvidenceRanker
from ..modules.reader.strategies import AnswerStrategy
from ..modules.retriever.own import check_beside, needs_index
from ..modules.settings import Settings, load_settings
from .conversation.conversation import Conversation
from .conversation.services import ConversationServices
from .conversation.turn.context import ConversationOptions
from .forks.session import TreeSession
from .rag.model_calls import ModelCalls
from .rag.result import RagResult
from .rag.running_work import RunningWork
from .rag.search_tree import SearchTree
from .rag.telemetry import TelemetrySender
from .search.policies.registry import create_policy
from .search.stop import create_stop
from .services import SessionServices
from .systems.registry import GraphBuilder, find_system
from .threads.checkpoints import locks_of
from .threads.context import Limits, RagContext, RunEvent
from .threads.interrupts import interrupts_in, waiting_words
from .threads.overrides import Overrides
from .threads.recording import Recording
from .threads.snapshots import NewThreadId, is_new_thread


class RagSession(TreeSession):
    """Collection, models and graph for questions to one collection, opened at the first question, freed by ``close``.

    An open session locks its Milvus Lite folder: use it in a ``with`` statement. All methods may be called from any
    thread, notebook cell or event loop, several at a time.

    ::

        with RagSession("standards", system="judge", topk=3) as session:
            print(session.ask("How long is the pressure held?").answer)

    Args:
        collection: Name of the collection; not needed for ``system="llm"``.
        system: "judge", "naive" (retrieve and answer), "llm" (closed book), or a baseline that searches in rounds:
            "ircot", "iter_retgen", "self_ask", "react". Or one of your own: ``module:name`` of a ``GraphBuilder``, a
            plug-in's name, or the builder itself.
        topk: Chunks that each query retrieves.
        search_type: "hybrid", "dense" or "sparse".
        search_graph: Kind of a graph of the collection, such as "entities", whose ranking is one more list of the
            search (``judgetree index --graph entities``).
        retriever: What is searched in place of a collection: ``prebuilt:PATH``, an index that others have built (see
            ``open_prebuilt``); or a retriever of your own in place of ``search_type``: ``module:name``, a plug-in's
            name, an object (see ``retriever.own``), or a class or function that makes it and may take ``index``,
            ``topk`` and ``settings``.
        judge: "auto", "generated" or "logprob", or one of your own: ``module:name``, a plug-in's name, a ``Judge``, or
            a class or function that makes it and may take ``llm``, ``settings`` and ``prompts``.
        llm: The model that answers, and judges unless the settings name another for that: a ``ChatLLM``, or a
            model of LangChain (see ``from_langchain``). None takes that of the settings.
        policy: Chooses the chunks that ask their sub-questions: "breadth" (all), "best_first", "value_cost", "wider",
            "mcts" or "random", with parameters such as "mcts:c=1.4"; or one of your own: a ``Policy``, or a class or
            function that makes one; itself, its ``module:name`` or a plug-in's name. ``Limits(width=…)`` bounds its
            rounds.
        stop: Closes a query whose verdicts suffice: "set" (a chunk scores 2, or the judge says that the chunks suffice
            together), "any" (a chunk scores 2), "confidence:p=0.9" or "never".
        evidence: What a reader sees: "useful" chunks (score 1, 2 or unknown, else all), "sufficient" ones (2, else
            useful) or "all" (see ``EvidenceChoice``).
        evidence_tokens: Most tokens of the passages that a reader sees; None for no limit.
        evidence_ranker: How that limit chooses: None by verdicts, "mmr", "facility_location" or "log_det" also by how
            little the passages repeat each other.
        strategy: How the reader takes in its evidence: "stuff" (at once), "map_reduce", "refine" or "map_rerank"; see
            ``modules.reader.strategies.read_evidence``. Closed book has none.
        prompts: Prompts of your own: a YAML file, or a mapping of names to texts (see ``load_prompts``). None takes
            those of the settings.
        tools: Tools besides the search, for ``system="react"`` or one of your own: "calculator", "web", or tools of
            LangChain: themselves, their ``module:name`` or a plug-in's name.
        limits: Limits of depth and model calls.
        context: Services to use instead of those that the settings describe.
        settings: None reads environment and ``.env``.
        recording: Which texts of model calls are kept, and where; None goes by the settings.
        on_progress: Called with (done, total, stage) while a local model is downloaded and started.
        gate: Cap on model calls at once that several sessions share; None makes one of ``settings.max_concurrency``.
    """

    def __init__(  # noqa: PLR0913 - a front door, where everything has a default that fits
        self,
        collection: str = "",
        *,
        system: str | GraphBuilder = "judge",
        topk: int = 3,
        search_type: str = "hybrid",
        search_graph: str | None = None,
        retriever: str | object | None = None,
        judge: str | object = "auto",
        policy: str | object = "breadth",
        stop: str = "set",
        evidence: EvidenceKind = "useful",
        evidence_tokens: int | None = None,
        evidence_ranker: EvidenceRanker | None = None,
        llm: ChatLLM | LangChainModel | None = None,
        strategy: AnswerStrategy = "stuff",
        prompts: GivenPrompts = None,
        tools: Sequence[str | BaseTool] = (),
        limits: Limits | None = None,
        context: RagContext | None = None,
        settings: Settings | None = None,
        recording: Recording | None = None,
        on_progress: Callable[[int, int, str], None] | None = None,
        gate: CallGate | None = None,
    ) -> None:
        chosen = find_system(system)
        if strategy not in get_args(AnswerStrategy):
            allowed = ", ".join(get_args(AnswerStrategy))
            raise SettingsError(f"Unknown strategy {strategy!r}. Allowed: {allowed}.")
        if not chosen.judges and (policy, stop, evidence) != ("breadth", "set", "useful"):
            raise SettingsError(
                f"The system {system!r} judges nothing: leave policy, stop and evidence out, or take the system judge."
            )
        if not chosen.retrieves and evidence_tokens is not None:
            raise SettingsError(f"The system {system!r} has no evidence: leave evidence_tokens out.")
        if tools and not chosen.uses_tools:
            raise SettingsError(f"The system {system!r} uses no tools. Leave tools out, or take the system react.")
        if retriever is not None:
            check_beside(retriever, collection=collection, search_type=search_type, search_graph=search_graph)
        has_to_search = context is None and chosen.retrieves and (retriever is None or needs_index(retriever))
        if not collection and has_to_search:
            raise SettingsError(f"The system {system!r} retrieves: name a collection.")
        if context is not None and prompts is not None:
            raise SettingsError("Give the prompts to the context: RagContext(prompts=load_prompts(…), …).")
        if context is not None and tools:
            raise SettingsError("Give the tools to the context: RagContext(tools=create_tools(…), …).")
        self.settings = settings or load_settings()
        if collection:
            refuse_reserved(collection, self.settings)
        given = self.settings.prompts if prompts is None else prompts
        self.prompts = context.prompts if context else load_prompts(given)
        """The prompts of one's own, by name."""
        self.collection = collection
        self.retriever = retriever
        """What is searched in place of the collection, as it was given."""
        self._services = SessionServices(
            collection=collection,
            system=chosen,
            topk=topk,
            search_type=search_type,
            search_graph=search_graph,
            retriever=retriever,
            judge=judge,
            policy=create_policy(policy),
            stop=create_stop(stop),
            evidence=EvidenceChoice(kind=evidence, max_tokens=evidence_tokens, ranker=evidence_ranker),
            llm=llm,
            strategy=strategy,
            prompts=self.prompts,
            tools=tools,
            limits=limits,
            context=context,
            settings=self.settings,
            on_progress=on_progress,
            gate=gate,
        )
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
        **overrides: Unpack[Overrides],
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
            **overrides: What this question has otherwise than the session: llm, topk, rerank, … (``Overrides``).

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
        async with self._running.entered(), self._alone(thread_id) as lease:
            known = None if is_new else await self._calls_of(thread_id)
            before = set() if is_new else (known or set()) | set(await self._journaled(thread_id))
            if known is None and continues:
                raise UnknownThread(f"Thread {thread_id!r} does not exist. Give a question without resume to start it.")
            named = NewThreadId(thread_id) if is_new else thread_id
            config: RunnableConfig = {"configurable": {"thread_id": named, "repeat": repeat}}
            context, error = await self.open_services(overrides), ""
            sender = self.open_sender()  # a missing extra is reported before the question is paid for
            interrupts: tuple[Interrupt, ...] = ()
            try:
                lease.check()
                interrupts = await self._run(question, config, context, on_event)
            except JudgetreeError as failure:
                if isinstance(failure, ModelCallError):
                    lease.fail(failure)
                if isinstance(failure, UserError):
                    raise
                error = str(failure)
            waiting = error or waiting_words(interrupts)
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
        async for event in self.graph.astream(question, config, context=context, stream_mode="custom"):
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

    async def open_services(self, overrides: Overrides | None = None) -> RagContext:
        """Return the services, opened at the first call. Await it on judgetree's own loop.

        ``overrides`` are those of one question.

        Raises:
            UserError: See ``ask``.
        """
        return await self._services.open(overrides)

    async def open_llm(self, given: str | ChatLLM | LangChainModel) -> ChatLLM:
        """Return a model, that of a spec with temperature and thinking of the settings; opened at its first call.

        Raises:
            UserError: The model cannot be created, as in ``create_llm``, or is none.
        """
        return await self._services.open_llm(given)

    def open_sender(self) -> TelemetrySender | None:
        """Return what sends traces, opened at the first call; None where the settings want none.

        Raises:
            DependencyError: The extra ``telemetry`` is not installed.
        """
        if self._sender is None and self.settings.telemetry == "otlp":
            self._sender = TelemetrySender()
        return self._sender
