"""Services that all conversations of a session share: settings, search, store and memory, opened once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ...modules.calls.journal import ThreadCalls
from ...modules.calls.prompts import Prompts
from ...modules.embedding.embedder import create_embeddings
from ...modules.errors import ConversationBusy, SettingsError, ThreadMoved
from ...modules.judge.contract import AnyJudge
from ...modules.judge.generated import GeneratedJudge
from ...modules.llm.contract import ChatLLM, thinking_of
from ...modules.llm.json_reply import JsonChat
from ...modules.llm.langchain_chat import LangChainModel
from ...modules.llm.tuned import SampledLLM
from ...modules.locks.locks import Locks
from ...modules.memory.memory import ConversationMemory
from ...modules.prompts.reading import load_prompts
from ...modules.retriever.own import searched_by
from ...modules.retriever.web import SearxngSearch, WebSearch
from ...modules.settings import Settings
from ..config.given_keys import GivenKeys
from ..rag.graph import RagGraph
from ..rag.running_work import RunningWork
from ..rag.telemetry import TelemetrySender
from ..systems.registry import retrieves
from ..threads.checkpoints import locks_of, store_errors
from ..threads.context import RagContext
from ..threads.named_failures import naming_conversation
from .identity import StoreIdentity
from .turn.context import ConversationOptions, TurnContext, TurnLimits, TurnMemory
from .turn.events import Stream
from .turn.graph import CompiledTurn, build_turn_graph
from .turn.result import TAKEN_KEYS
from .turn.state import ConversationState
from .turn.store import ConversationStore

_STORE_LOCK = ""
"""Name of the lock that guards the making of the store's id; no conversation has an empty name."""


@dataclass(kw_only=True)
class OpenStores:
    """The open services."""

    store: ConversationStore
    identity: StoreIdentity
    memory: TurnMemory
    locks: Locks
    graph: CompiledTurn
    finished_turns: dict[str, str] = field(default_factory=dict)
    """Last turn of each conversation whose thread this process has deleted, by conversation id."""
    _chats: dict[object, JsonChat] = field(default_factory=dict)
    _judge: AnyJudge | None = None
    _store_id: str = ""

    async def make_store_id(self) -> str:
        """Return the id of the checkpoint store, made at the first call."""
        if not self._store_id:
            async with self.locks.hold(_STORE_LOCK):
                self._store_id = await self.identity.make()
        return self._store_id

    def chat_of(self, llm: ChatLLM, max_tokens: int) -> JsonChat:
        """Return a model for JSON replies, one for all turns, so that it probes the endpoint's formats once."""
        key = llm.key if isinstance(llm, SampledLLM) else id(llm)  # the chat keeps the model alive
        if key not in self._chats:
            if len(self._chats) >= _MOST_CHATS:
                self._chats.clear()
            self._chats[key] = JsonChat(llm, max_tokens=max_tokens)
        return self._chats[key]

    def judge_of(self, services: RagContext) -> AnyJudge:
        """Return the judge of the search; for a search without one, a judge that lets the reader write verdicts."""
        if self._judge is None:
            self._judge = services.judge or GeneratedJudge(services.reader, prompts=services.prompts)
        return self._judge


_MOST_CHATS = 16
"""Models whose formats are remembered; a caller may give each question a new one."""
_MEMORY_EMBEDDINGS = "local:use"
"""Embeddings of the memory with the setting "auto": one memory serves collections of any language."""


class SearchSession(Protocol):
    """Protocol of the sessions whose search conversations use, such as ``RagSession``."""

    settings: Settings
    collection: str
    system: str
    prompts: Prompts
    graph: RagGraph
    """The graph that searches; its threads are the turns' search trees, and its store has the conversations."""

    async def open_services(self, overrides: GivenKeys | None = None) -> RagContext:
        """Return the services of the search, opened at the first call; with ``overrides``, those of one question."""
        ...

    async def open_llm(self, given: str | ChatLLM | LangChainModel) -> ChatLLM:
        """Return a model, opened at the first call."""
        ...

    def open_sender(self) -> TelemetrySender | None:
        """Return the sender of traces, opened at the first call; None if the settings switch traces off."""
        ...


class ConversationServices:
    """Services that the conversations of a session share; its coroutines run on judgetree's own loop."""

    def __init__(
        self,
        session: SearchSession,
        *,
        limits_of_prompts: TurnLimits | None = None,
        memory: TurnMemory | None = None,
        web: WebSearch | None = None,
    ) -> None:
        """Keep the arguments, which ``Conversations`` explains; ``open`` opens what they describe.

        The session stays the caller's, who closes it after these services.
        """
        self.session = session
        self.settings = session.settings
        self.limits = limits_of_prompts or TurnLimits.from_settings(self.settings)
        self._web = web or (SearxngSearch(self.settings.searxng_url) if self.settings.searxng_url else None)
        self._given_memory = memory
        self._opening = asyncio.Lock()
        self._opened: OpenStores | None = None
        self._resources = AsyncExitStack()
        self._running = RunningWork("session")

    @property
    def collection(self) -> str:
        """Name and address of the searched collection, or what the session searches in place of one; else ``""``."""
        name = self.session.collection
        if not retrieves(self.session.system):
            return ""
        if other := searched_by(getattr(self.session, "retriever", None)):  # not every session takes a retriever
            return other
        if not name:
            return ""
        address = str(self.settings.milvus_address)
        return f"{name} in {address if '://' in address else Path(address).resolve()}"

    @property
    def is_of_another_process(self) -> bool:
        """True in a process that was forked from the one that used these services first."""
        return self._running.is_of_another_process

    @property
    def rag(self) -> RagGraph:
        """The graph that searches, whose threads are the turns' search trees."""
        return self.session.graph

    def complete_options(self, options: ConversationOptions) -> ConversationOptions:
        """Return the options with what they leave to the settings.

        Raises:
            SettingsError: ``web_or_rag`` without a web search, ``output_key`` is empty or the key of something else, or
                prompts are not usable.
        """
        if options.web_or_rag and self._web is None:
            raise SettingsError("web_or_rag needs a web search: set JUDGETREE_SEARXNG_URL, or give web=….")
        if not options.output_key or options.output_key in TAKEN_KEYS:
            taken = ", ".join(TAKEN_KEYS)
            raise SettingsError(f"output_key={options.output_key!r} is not allowed. Give a key besides {taken}.")
        return replace(
            options,
            condense_llm=options.condense_llm or self.settings.condense_llm or None,
            prompts_thinking=load_prompts(options.prompts_thinking),
            prompts_no_thinking=load_prompts(options.prompts_no_thinking),
        )

    def store_errors(self) -> AbstractContextManager[None]:
        """Turn errors of the checkpoint store into a ``SettingsError``."""
        return store_errors(self.settings.checkpoint_url)

    async def open(self) -> OpenStores:
        """Return store, memory and locks, opened at the first call."""
        async with self._opening:
            if self._opened is None:
                self._opened = await self._open()
            return self._opened

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[OpenStores]:
        """Hold the lock of a conversation inside; errors of the checkpoint store become a ``SettingsError``.

        Raises:
            SessionError: The services were closed inside, or belong to the process that this one was forked from.
            ConversationBusy: Another process changed the conversation meanwhile, so its lock did not work.
        """
        async with self._running.entered():
            opened = await self.open()
            async with opened.locks.hold(name):
                with naming_conversation(name), self.store_errors():
                    try:
                        yield opened
                    except ThreadMoved as error:
                        raise ConversationBusy(
                            f"The conversation {name!r} was changed by another process although it was locked: its "
                            "processes do not share a disk or database whose locks work. Ask again."
                        ) from error

    async def open_models(self, options: ConversationOptions, overrides: GivenKeys) -> tuple[RagContext, ChatLLM]:
        """Return the services of one turn's search, and the model that understands follow-ups.

        Raises:
            UserError: The settings, the collection, a key, a model or an override needs a correction.
        """
        services = await self.session.open_services(overrides)
        thinking = thinking_of(services.reader)
        if thinking is not None:
            own = load_prompts(options.prompts_thinking if thinking else options.prompts_no_thinking)
            services = services.with_prompts(Prompts({**services.prompts, **own}.values()))
        services = replace(services, context_tokens=self.limits.max_tokens)
        return services, await self.session.open_llm(options.condense_llm or services.reader)

    async def turn_context(
        self,
        conversation: ConversationState,
        *,
        options: ConversationOptions,
        overrides: GivenKeys,
        stream: Stream | None,
        calls: ThreadCalls | None,
    ) -> TurnContext:
        """Make the context of one turn; opens the services at the first call."""
        opened = await self.open()
        services, condenser = await self.open_models(options, overrides)
        return TurnContext(
            conversation=conversation,
            rag=self.rag,
            services=services,
            chat=opened.chat_of(services.reader, self.limits.max_json_tokens),
            condenser=condenser,
            condensing=opened.chat_of(condenser, self.limits.max_json_tokens),
            judge=opened.judge_of(await self.session.open_services()),
            memory=opened.memory,
            store=opened.store,
            options=options,
            limits=self.limits,
            web=self._web,
            calls=calls,
            stream=stream,
        )

    async def _open(self) -> OpenStores:
        with self.store_errors():
            saver = await self.rag.aopen_store()
        assert saver is not None, "a session keeps its threads"
        locks = locks_of(self.settings.checkpoint_url)
        self._resources.push_async_callback(locks.aclose)
        return OpenStores(
            store=ConversationStore(saver, await self.rag.aopen_journal(), transcripts=self.rag.transcripts),
            identity=StoreIdentity(saver),
            memory=self._memory(),
            locks=locks,
            graph=build_turn_graph(saver),
        )

    def _memory(self) -> TurnMemory:
        if self._given_memory is not None:
            return self._given_memory
        settings = self.settings
        spec = _MEMORY_EMBEDDINGS if settings.embeddings == "auto" else settings.embeddings
        memory = ConversationMemory(
            create_embeddings(spec, settings),
            collection=settings.conversation_collection,
            uri=settings.milvus_address,
            token=settings.milvus_token.get_secret_value(),
        )
        self._resources.push_async_callback(asyncio.to_thread, memory.close)
        return memory

    async def close(self) -> None:
        """Close locks and memory; ``open`` opens them again. Running turns end with a ``SessionError``."""
        if self.is_of_another_process:
            return
        await self._running.end()
        self._opened = None
        await self._resources.aclose()
