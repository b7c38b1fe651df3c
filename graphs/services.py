"""The services of a session: collection, models, judge and prompts, opened at the first question."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import cast

from ..modules.addresses import Address
from ..modules.calls.prices import Prices, load_prices
from ..modules.calls.prompts import Prompts
from ..modules.errors import SettingsError
from ..modules.index.factory import open_index
from ..modules.judge.contract import AnyJudge
from ..modules.judge.factory import own_judge
from ..modules.judge.insert_block import InsertBlockFilter
from ..modules.llm.call_gate import CallGate
from ..modules.llm.contract import ChatLLM
from ..modules.llm.factory import is_local
from ..modules.llm.langchain_chat import LangChainModel, as_chat_llm
from ..modules.llm.tuned import with_sampling
from ..modules.progress import StageProgress
from ..modules.settings import Settings
from .config.given_keys import GivenKeys
from .search.expansion_rule import follows_links
from .service_builder import ServiceBuilder
from .systems.registry import System
from .threads.context import RagContext
from .threads.overrides import GivenLLM, overridden

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
        self._builder = ServiceBuilder(
            keys=self.keys,
            settings=self.settings,
            prompts=self.prompts,
            gate=self.gate or CallGate(self.settings.max_concurrency),
            open_index=lambda: self._resources.enter_context(open_index(self.collection, self.settings)),
            on_progress=self.on_progress,
        )
        self._llms: dict[str | int, ChatLLM] = {}
        self._free: tuple[str, ...] = ()
        self._filters: dict[int, InsertBlockFilter] = {}  # which keep their models alive

    async def open(self, overrides: GivenKeys | None = None) -> RagContext:
        """Return the services, opened at the first call, with the overrides of one question."""
        async with self._opening:
            if self._opened is None:
                if self.context is not None:
                    opened = await overridden(self.context, self.keys, self.open_llm)
                else:
                    opened = await asyncio.to_thread(self._open)
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
                self._llms[id(given)] = self._builder.bounded(as_chat_llm(given))  # which keeps it alive
            return self._llms[id(given)]
        if not isinstance(given, str):
            return self._builder.bounded(as_chat_llm(given))
        spec, key = given, Address(given).revealed()
        if key not in self._llms:
            llm = await asyncio.to_thread(self._builder.create_llm, spec)
            self._llms[key] = self._builder.tuned(llm)
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
        settings, builder = self.settings, self._builder
        if self.system.judges:
            own_judge(self.keys["judge"])  # one that can be none is refused before a collection is opened
        tools = builder.create_tools()
        # A missing collection is reported before a model is downloaded.
        retriever = builder.open_retriever() if self.system.retrieves else None
        if self._llm is not None:
            llm, reader = self._llm, builder.bounded(with_sampling(self._llm, thinking=settings.thinking))
        else:
            llm = builder.create_llm(settings.llm_spec)
            reader = builder.tuned(llm)
            self._free = (llm.model,) if is_local(settings.llm_spec) else ()
        config, judges = self.keys.config, self.system.judges
        return builder.context(
            reader=reader,
            retriever=retriever,
            judge=self._create_judge(llm) if judges else None,
            links=builder.open_links(retriever) if judges and follows_links(config.expansion) else None,
            tools=tools,
            prices=self._prices() if config.max_tree_cost_usd is not None else None,
        )

    def _prices(self) -> Prices:
        """Return the prices for a limit of money, with the settings' model free if it runs in this process."""
        return load_prices(self.settings.home).with_free(self._free)

    def _create_judge(self, llm: ChatLLM) -> AnyJudge:
        spec: str = self.settings.judge_spec
        given = self.keys.objects.get("judge_llm")
        if given is not None:
            return self._builder.create_judge(as_chat_llm(cast(ChatLLM | LangChainModel, given)), spec="")
        if spec != self.settings.llm_spec:
            llm = self._builder.create_llm(spec)
        elif self._llm is not None:
            spec = ""
        return self._builder.create_judge(llm, spec=spec)
