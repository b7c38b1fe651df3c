"""The services of a session: collection, models, judge and prompts, opened at the first question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TypedDict

from langchain_core.tools import BaseTool

from ..modules.addresses import Address
from ..modules.calls.prompts import Prompts
from ..modules.index.factory import open_index
from ..modules.index.index import Index
from ..modules.judge.contract import AnyJudge
from ..modules.judge.factory import create_judge
from ..modules.llm.endpoint import CallGate, ChatLLM
from ..modules.llm.factory import create_llm
from ..modules.llm.langchain_chat import LangChainModel, as_chat_llm
from ..modules.llm.tuned import tuned
from ..modules.prompts.reading import GivenPrompts
from ..modules.reader.strategies import AnswerStrategy
from ..modules.retriever.contract import ChunkRetriever
from ..modules.retriever.own import create_own_retriever, needs_index
from ..modules.retriever.retriever import Retriever
from ..modules.settings import Settings
from ..modules.tools.factory import create_tools
from .search.policy import Policy
from .search.stop import Stop
from .systems.registry import GraphBuilder, System
from .threads.context import Limits, RagContext
from .threads.overrides import Overrides, overridden
from .threads.recording import Recording


class SessionServices:
    """The services that a session's arguments describe; its coroutines run on judgetree's own loop."""

    def __init__(  # noqa: PLR0913 - the arguments of RagSession
        self,
        collection: str,
        *,
        system: System,
        topk: int,
        search_type: str,
        retriever: str | object | None,
        judge: str | object,
        policy: Policy,
        stop: Stop,
        llm: ChatLLM | LangChainModel | None,
        strategy: AnswerStrategy,
        prompts: Prompts,
        tools: Sequence[str | BaseTool],
        limits: Limits | None,
        context: RagContext | None,
        settings: Settings,
        on_progress: Callable[[int, int, str], None] | None,
    ) -> None:
        """Keep the arguments, which ``RagSession`` explains."""
        self._collection = collection
        self._system = system
        self._topk = topk
        self._search_type = search_type
        self._retriever = retriever
        self._judge = judge
        self._policy = policy
        self._stop = stop
        self._llm: ChatLLM | None = None if llm is None else as_chat_llm(llm)
        self._strategy: AnswerStrategy = strategy
        self._prompts = prompts
        self._tools = tools
        self._limits = limits or Limits()
        self._settings = settings
        self._on_progress = on_progress
        self._given = self._opened = context
        self._resources = ExitStack()
        self._opening = asyncio.Lock()
        self._gate = CallGate(settings.max_concurrency)
        self._llms: dict[str | int, ChatLLM] = {}

    async def open(self, overrides: Overrides | None = None) -> RagContext:
        """Return the services, opened at the first call, with the overrides of one question."""
        async with self._opening:
            if self._opened is None:
                self._opened = await asyncio.to_thread(self._open)
            return await overridden(self._opened, overrides, self.open_llm) if overrides else self._opened

    async def open_llm(self, given: str | ChatLLM | LangChainModel) -> ChatLLM:
        """Return a model, that of a spec with temperature and thinking of the settings; opened at its first call."""
        if isinstance(given, LangChainModel):
            if id(given) not in self._llms:
                self._llms[id(given)] = as_chat_llm(given)  # which keeps it alive
            return self._llms[id(given)]
        if not isinstance(given, str):
            return as_chat_llm(given)
        spec, key = given, Address(given).revealed()
        if key not in self._llms:
            llm = await asyncio.to_thread(create_llm, spec, self._settings, self._gate, on_progress=self._on_progress)
            self._llms[key] = self._tuned(llm)
        return self._llms[key]

    async def close(self) -> None:
        """Free the collection; ``open`` opens it again."""
        self._opened = self._given
        await asyncio.to_thread(self._resources.close)

    def _open(self) -> RagContext:
        settings = self._settings
        tools = create_tools(self._tools, settings)
        retriever: ChunkRetriever | None = None
        if self._system.retrieves:
            retriever = self._open_retriever()  # a missing collection is reported before a model is downloaded
        if self._llm is not None:
            llm, reader = self._llm, tuned(self._llm, thinking=settings.thinking)
        else:
            llm = create_llm(settings.llm_spec, settings, self._gate, on_progress=self._on_progress)
            reader = self._tuned(llm)
        return RagContext(
            reader=reader,
            retriever=retriever,
            judge=self._create_judge(llm),
            limits=self._limits,
            policy=self._policy,
            stop=self._stop,
            strategy=self._strategy,
            prompts=self._prompts,
            tools=tools,
        )

    def _tuned(self, llm: ChatLLM) -> ChatLLM:
        return tuned(llm, temperature=self._settings.temperature, thinking=self._settings.thinking)

    def _open_retriever(self) -> ChunkRetriever:
        if self._retriever is not None:
            index = self._open_index() if needs_index(self._retriever) else None
            return create_own_retriever(self._retriever, index=index, topk=self._topk, settings=self._settings)
        retriever = Retriever(self._open_index(), topk=self._topk, search_type=self._search_type)
        retriever.check_args()
        return retriever

    def _open_index(self) -> Index:
        return self._resources.enter_context(open_index(self._collection, self._settings))

    def _create_judge(self, llm: ChatLLM) -> AnyJudge | None:
        if not self._system.judges:
            return None
        settings = self._settings
        spec: str = settings.judge_spec
        if spec != settings.llm_spec:
            llm = create_llm(spec, settings, self._gate, on_progress=self._on_progress)
        elif self._llm is not None:
            spec = ""
        return create_judge(self._judge, llm, spec=spec, settings=settings, prompts=self._prompts)


class SessionOptions(TypedDict, total=False):
    """Keyword arguments of ``RagSession``."""

    system: str | GraphBuilder
    topk: int
    search_type: str
    retriever: str | object | None
    judge: str | object
    policy: str | object
    stop: str
    llm: ChatLLM | LangChainModel | None
    strategy: AnswerStrategy
    prompts: GivenPrompts
    tools: Sequence[str | BaseTool]
    limits: Limits
    context: RagContext
    settings: Settings
    recording: Recording | None
    on_progress: Callable[[int, int, str], None]
