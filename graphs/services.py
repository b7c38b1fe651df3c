"""The services of a session: collection, models, judge and prompts, opened at the first question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import cast

from langchain_core.tools import BaseTool

from ..modules.addresses import Address
from ..modules.calls.prices import Prices, load_prices
from ..modules.calls.prompts import Prompts
from ..modules.errors import SettingsError
from ..modules.index.factory import open_index
from ..modules.index.index import Index
from ..modules.judge.contract import AnyJudge
from ..modules.judge.factory import create_judge, own_judge
from ..modules.judge.insert_block import InsertBlockFilter
from ..modules.llm.call_gate import CallGate
from ..modules.llm.contract import ChatLLM
from ..modules.llm.factory import create_llm, is_local
from ..modules.llm.langchain_chat import LangChainModel, as_chat_llm
from ..modules.llm.tuned import bounded, tuned
from ..modules.prebuilt.files import is_prebuilt
from ..modules.progress import StageProgress
from ..modules.reader.evidence_choice import EvidenceChoice
from ..modules.retriever.contract import ChunkRetriever
from ..modules.retriever.graph_list import GraphList
from ..modules.retriever.linked_chunks import LinkedChunks, linked_chunks_of
from ..modules.retriever.own import create_own_retriever, needs_index, prebuilt_retriever
from ..modules.retriever.retriever import Retriever
from ..modules.settings import Settings
from ..modules.tools.factory import create_tools
from .config.given_keys import GivenKeys
from .config.limits import Limits
from .search.expansion_rule import follows_links
from .search.policies.registry import create_policy
from .search.stop import create_stop
from .systems.registry import System
from .threads.context import RagContext
from .threads.overrides import GivenLLM, overridden, search_arguments

_MOST_FILTERS = 16
"""Models whose filters are kept; a caller may give each question a new one."""


@dataclass(eq=False, kw_only=True)
class SessionServices:
    """The services that the arguments of ``RagSession`` describe; its coroutines run on judgetree's own loop."""

    collection: str
    system: System
    keys: GivenKeys
    prompts: Prompts
    context: RagContext | None
    settings: Settings
    on_progress: StageProgress | None
    gate: CallGate | None = None

    def __post_init__(self) -> None:
        given = self.keys.objects.get("llm")
        self._llm = None if given is None else as_chat_llm(cast(ChatLLM | LangChainModel, given))
        self._opened: RagContext | None = None
        self._resources = ExitStack()
        self._opening = asyncio.Lock()
        self._gate = self.gate or CallGate(self.settings.max_concurrency)
        self._llms: dict[str | int, ChatLLM] = {}
        self._free: tuple[str, ...] = ()
        self._filters: dict[int, InsertBlockFilter] = {}  # which keep their models alive

    async def open(self, overrides: GivenKeys | None = None) -> RagContext:
        """Return the services, opened at the first call, with the overrides of one question."""
        async with self._opening:
            if self._opened is None:
                opened = self.context and await overridden(self.context, self.keys, self.open_llm)
                opened = opened or await asyncio.to_thread(self._open)
                self._opened = replace(opened, insert_block=await self._insert_block(opened, self.keys))
            if overrides is None or not overrides.names():
                return self._opened
            services = await overridden(self._opened, overrides, self.open_llm)
            services = replace(services, insert_block=await self._insert_block(self._opened, overrides))
        if services.prices is None and services.limits.max_tree_cost_usd is not None:
            return replace(services, prices=await asyncio.to_thread(self._prices))
        return services

    async def open_llm(self, given: GivenLLM) -> ChatLLM:
        """Return a model, that of a spec with temperature and thinking of the settings; opened at its first call."""
        if isinstance(given, LangChainModel):
            if id(given) not in self._llms:
                self._llms[id(given)] = self._bounded(as_chat_llm(given))  # which keeps it alive
            return self._llms[id(given)]
        if not isinstance(given, str):
            return self._bounded(as_chat_llm(given))
        spec, key = given, Address(given).revealed()
        if key not in self._llms:
            llm = await asyncio.to_thread(create_llm, spec, self.settings, self._gate, on_progress=self.on_progress)
            self._llms[key] = self._tuned(llm)
        return self._llms[key]

    async def _insert_block(self, services: RagContext, keys: GivenKeys) -> InsertBlockFilter | None:
        """Return the filter of a session or question, by the named model or else the one that judges."""
        if "insert_block" not in keys.names() and "insert_block_llm" not in keys.names():
            return services.insert_block
        if not (keys.config.insert_block if "insert_block" in keys.names() else services.insert_block):
            return None
        if services.retriever is None:
            raise SettingsError("insert_block filters chunks: leave it out for a system without a search.")
        settings = self.settings
        judging = None if settings.judge_spec == settings.llm_spec else settings.judge_spec
        llm = await self.open_llm(cast(GivenLLM, keys["insert_block_llm"] or judging or services.reader))
        if id(llm) not in self._filters:
            if len(self._filters) >= _MOST_FILTERS:
                self._filters.clear()
            self._filters[id(llm)] = InsertBlockFilter(llm, prompts=services.prompts)
        return self._filters[id(llm)]

    async def close(self) -> None:
        """Free the collection; ``open`` opens it again."""
        self._opened = None
        await asyncio.to_thread(self._resources.close)

    def _open(self) -> RagContext:
        settings = self.settings
        keys, config = self.keys, self.keys.config
        if self.system.judges:
            own_judge(keys["judge"])  # one that can be none is refused before a collection is opened
        tools = create_tools(cast(Sequence[str | BaseTool], keys["tools"]), settings)
        retriever: ChunkRetriever | None = None
        if self.system.retrieves:
            retriever = self._open_retriever()  # a missing collection is reported before a model is downloaded
        if self._llm is not None:
            llm, reader = self._llm, self._bounded(tuned(self._llm, thinking=settings.thinking))
        else:
            llm = create_llm(settings.llm_spec, settings, self._gate, on_progress=self.on_progress)
            reader = self._tuned(llm)
            self._free = (llm.model,) if is_local(settings.llm_spec) else ()
        limits = config.part(Limits)
        return RagContext(
            reader=reader,
            retriever=retriever,
            links=self._links(retriever) if self.system.judges and follows_links(limits.expansion) else None,
            judge=self._create_judge(llm),
            limits=limits,
            policy=create_policy(keys["policy"]),
            stop=create_stop(config.stop),
            evidence=config.part(EvidenceChoice),
            context_tokens=settings.llm_max_tokens,
            strategy=config.strategy,
            prompts=self.prompts,
            prices=self._prices() if limits.max_tree_cost_usd is not None else None,
            tools=tools,
            config=keys.saved(),
        )

    def _prices(self) -> Prices:
        """Return the prices for a limit of money, with the settings' model free if it runs in this process."""
        return load_prices(self.settings.home).with_free(self._free)

    def _tuned(self, llm: ChatLLM) -> ChatLLM:
        return self._bounded(tuned(llm, temperature=self.settings.temperature, thinking=self.settings.thinking))

    def _bounded(self, llm: ChatLLM) -> ChatLLM:
        return bounded(llm, self.settings.llm_max_tokens)

    def _open_retriever(self) -> ChunkRetriever:
        given, config = self.keys["retriever"], self.keys.config
        arguments = {"topk": config.topk, "search_type": config.search_type, **search_arguments(self.keys)}
        if isinstance(given, str) and is_prebuilt(given):
            return prebuilt_retriever(given, self.settings, on_progress=self.on_progress, **arguments)
        if given is not None:
            index = self._open_index() if needs_index(given) else None
            return create_own_retriever(given, index=index, topk=config.topk, settings=self.settings)
        index, kind = self._open_index(), config.search_graph
        graph = None if kind is None else GraphList(index, self.settings.home, kind=kind)
        retriever = Retriever(index, graph=graph, **arguments)
        retriever.check_args()
        return retriever

    def _links(self, retriever: ChunkRetriever | None) -> LinkedChunks:
        """Return the links of the collection that is searched, which must be there."""
        links = linked_chunks_of(retriever, self.settings.home)
        links.open()
        return links

    def _open_index(self) -> Index:
        return self._resources.enter_context(open_index(self.collection, self.settings))

    def _create_judge(self, llm: ChatLLM) -> AnyJudge | None:
        if not self.system.judges:
            return None
        settings = self.settings
        spec: str = settings.judge_spec
        if spec != settings.llm_spec:
            llm = create_llm(spec, settings, self._gate, on_progress=self.on_progress)
        elif self._llm is not None:
            spec = ""
        return create_judge(self.keys["judge"], self._bounded(llm), spec=spec, settings=settings, prompts=self.prompts)
