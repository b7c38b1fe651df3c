"""Builds the services of a configuration: retriever, judge, filter and context, for sessions, runs and the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from langchain_core.tools import BaseTool

from ..modules.calls.prices import Prices
from ..modules.calls.prompts import Prompts
from ..modules.index.index import Index
from ..modules.judge.contract import AnyJudge
from ..modules.judge.factory import create_judge
from ..modules.judge.gold import GoldTable
from ..modules.judge.insert_block import InsertBlockFilter
from ..modules.judge.sub_questions import SubQuestionWriter
from ..modules.llm.cache import CacheableLLM
from ..modules.llm.call_gate import CallGate
from ..modules.llm.contract import ChatLLM
from ..modules.llm.factory import create_llm
from ..modules.llm.rate_limit import Admissions
from ..modules.llm.tuned import bounded, check_takes, with_sampling
from ..modules.prebuilt.files import is_prebuilt
from ..modules.progress import StageProgress
from ..modules.reader.evidence_choice import EvidenceChoice
from ..modules.retriever.contract import ChunkRetriever
from ..modules.retriever.graph_list import GraphList
from ..modules.retriever.linked_chunks import LinkedChunks, linked_chunks_of
from ..modules.retriever.own import create_own_retriever, needs_index, prebuilt_retriever
from ..modules.retriever.retriever import Retriever
from ..modules.settings import Settings
from ..modules.structure.links import KIND
from ..modules.tools.factory import create_tools
from ..modules.tools.tool import Tool
from .config.given_keys import GivenKeys
from .config.limits import Limits
from .search.policies.registry import create_policy
from .search.stop import create_stop
from .threads.context import RagContext
from .threads.overrides import search_arguments


def open_graph(graph: GraphList | LinkedChunks, kind: str) -> None:
    """Open a graph of a collection, which must be there."""
    graph.open()


@dataclass(eq=False, kw_only=True)
class ServiceBuilder:
    """Builds the services of one configuration; all methods block.

    A session and a run differ in what they hand in: how an index is opened, and what happens where a graph is missing.
    """

    keys: GivenKeys
    settings: Settings
    prompts: Prompts
    gate: CallGate
    open_index: Callable[[], Index]
    """Opens the index that is searched; its owner closes it."""
    open_graph: Callable[[GraphList | LinkedChunks, str], None] = open_graph
    """Opens a graph of the collection, of the named kind, or makes it."""
    admissions: Admissions | None = None
    """Rate limits that other processes share; None for those of this process."""
    on_progress: StageProgress | None = None
    """Called with (done, total, stage) while a local model is downloaded and started."""

    def create_llm(self, spec: str) -> CacheableLLM:
        """Create a model from its spec."""
        return create_llm(spec, self.settings, self.gate, admissions=self.admissions, on_progress=self.on_progress)

    def tuned(self, llm: ChatLLM) -> ChatLLM:
        """Return a model with temperature, thinking and the longest prompt of the settings."""
        settings = self.settings
        return self.bounded(with_sampling(llm, temperature=settings.temperature or None, thinking=settings.thinking))

    def bounded(self, llm: ChatLLM) -> ChatLLM:
        """Return a model with the longest prompt of the settings."""
        return bounded(llm, self.settings.llm_max_tokens)

    def create_tools(self) -> tuple[Tool, ...]:
        """Create the tools of an agent."""
        return create_tools(cast(Sequence[str | BaseTool], self.keys["tools"]), self.settings)

    def create_judge(self, llm: ChatLLM, *, spec: str, gold: GoldTable | None = None) -> AnyJudge:
        """Create the judge; ``spec`` is that of its model in the settings, empty for a model that is an object."""
        return create_judge(
            self.keys["judge"],
            self.bounded(llm),
            spec=spec,
            settings=self.settings,
            prompts=self.prompts,
            gold=gold,
            admissions=self.admissions,
        )

    def open_retriever(self) -> ChunkRetriever:
        """Open the search: the built-in one over the index, that of a prebuilt index, or one of one's own.

        Raises:
            UserError: The collection cannot be opened, or an argument does not fit it.
        """
        given, config = self.keys["retriever"], self.keys.config
        arguments = {"topk": config.topk, "search_type": config.search_type, **search_arguments(self.keys)}
        if isinstance(given, str) and is_prebuilt(given):
            return prebuilt_retriever(
                given, self.settings, admissions=self.admissions, on_progress=self.on_progress, **arguments
            )
        if given is not None:
            index = self.open_index() if needs_index(given) else None
            return create_own_retriever(given, index=index, topk=config.topk, settings=self.settings)
        index, kind = self.open_index(), config.search_graph
        graph = None if kind is None else GraphList(index, self.settings.home, kind=kind)
        if graph is not None:
            self.open_graph(graph, graph.kind)
        retriever = Retriever(index, graph=graph, **arguments)
        retriever.check_args()
        return retriever

    def open_links(self, retriever: ChunkRetriever | None) -> LinkedChunks:
        """Return the links of the collection that a retriever searches."""
        links = linked_chunks_of(retriever, self.settings.home)
        self.open_graph(links, KIND)
        return links

    def context(
        self,
        *,
        reader: ChatLLM,
        retriever: ChunkRetriever | None,
        judge: AnyJudge | None,
        links: LinkedChunks | None,
        tools: tuple[Tool, ...],
        prices: Prices | None,
        writer: SubQuestionWriter | None = None,
        insert_block: InsertBlockFilter | None = None,
    ) -> RagContext:
        """Return the services as the context of a graph, with the limits and choices of the configuration."""
        config = self.keys.config
        check_takes(reader, config.answer_form.options)
        return RagContext(
            reader=reader,
            retriever=retriever,
            judge=judge,
            links=links,
            writer=writer,
            insert_block=insert_block,
            limits=config.part(Limits),
            policy=create_policy(self.keys["policy"]),
            stop=create_stop(config.stop),
            evidence=config.part(EvidenceChoice),
            context_tokens=self.settings.llm_max_tokens,
            strategy=config.strategy,
            answer_form=config.answer_form,
            prompts=self.prompts,
            prices=prices,
            tools=tools,
            config=self.keys.saved(),
        )
