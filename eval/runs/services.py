"""Services that the systems of a run share: indexed corpus, models, their cache, the limit on calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ...graphs.config.given_keys import GivenKeys
from ...graphs.config.variants import read_variant, system_name
from ...graphs.search.expansion_rule import follows_links
from ...graphs.search.policies.registry import POLICIES, create_policy
from ...graphs.service_builder import ServiceBuilder
from ...graphs.systems.registry import find_system, retrieves
from ...graphs.threads.context import RagContext
from ...graphs.threads.overrides import search_arguments, searching
from ...modules.addresses import Address
from ...modules.calls.prices import LOCAL, load_prices
from ...modules.calls.prompts import DEFAULT_PROMPTS
from ...modules.calls.usage import Payer
from ...modules.config.models import CacheMode
from ...modules.errors import CollectionError, SettingsError
from ...modules.index.factory import open_index
from ...modules.index.file_parsers import LoadLimits
from ...modules.index.index import Index
from ...modules.judge.contract import AnyJudge
from ...modules.judge.factory import noise_of
from ...modules.judge.gold import GoldTable
from ...modules.judge.insert_block import InsertBlockFilter
from ...modules.judge.noisy import NoisyWriter, noisy_judge
from ...modules.llm.cache import CacheableLLM, CachedLLM, CompletionCache, without_reading
from ...modules.llm.call_gate import CallGate
from ...modules.llm.contract import ChatLLM, model_fingerprint
from ...modules.llm.factory import is_local, source_of_llm
from ...modules.llm.rate_limit import Admissions
from ...modules.llm.wire.adaptations import joined_adaptations, told_adaptations
from ...modules.progress import StageProgress
from ...modules.retriever.contract import ChunkRetriever
from ...modules.retriever.graph_list import GraphList
from ...modules.retriever.linked_chunks import LinkedChunks
from ...modules.retriever.own import check_beside
from ...modules.retriever.prebuilt import PrebuiltIndex
from ...modules.retriever.retriever import Retriever
from ...modules.retriever.search import DOCUMENT_KEY
from ...modules.settings import Settings
from ...modules.specs import name_in
from ...modules.storage.atomic import replacing
from ...modules.structure.building import GRAPHS, build_graph
from ...modules.tools.tool import Tool
from ...modules.trust.private import private_folder
from ..datasets.questions import Dataset
from ..datasets.registry import OWN_QUESTIONS
from ..rows.cautions import gold_words
from .experiment import Experiment
from .gold import check_gold_known, gold_in, gold_table
from .limits import LimitedLLM
from .manifest import opened_part

_CHUNK_SIZE = 100_000
"""Longer than any paragraph, so that each document of a data set is one chunk, as its gold keys assume."""

_LIMITS = LoadLimits(file_bytes=1 << 40, documents=1 << 40, seconds=3600.0, memory_bytes=1 << 40)
"""Limits for trusted files: a corpus that judgetree wrote, or the data set's folder, either of any size."""


def collection_of(dataset: Dataset) -> str:
    """Name the collection of a corpus by its data set and content."""
    return f"eval_{re.sub(r'[^0-9A-Za-z]+', '_', dataset.name)}_{dataset.corpus_digest[:12]}"


def open_corpus(dataset: Dataset, settings: Settings, *, on_progress: StageProgress | None = None) -> Index:
    """Open an index over the data set's corpus and bring it up to date; close it after use.

    Documents of a data set are one chunk each; a folder is chunked like ``judgetree index``. Embeds only new texts, so
    a second call costs nothing.

    Raises:
        SettingsError: The data set has no corpus.
        UserError: The index cannot be opened or built.
    """
    if dataset.folder is None and not dataset.documents:
        raise SettingsError(
            f"The data set {dataset.name!r} has no corpus to retrieve from. Name a collection or a folder: --corpus "
            "NAME or --corpus ./FOLDER, `corpus` in YAML and Python. Or ask the system llm alone."
        )
    path = dataset.folder or _written(dataset, settings.home / "corpora" / dataset.corpus_digest[:12])
    index = open_index(
        collection_of(dataset), settings, data_path=path, limits=_LIMITS, source_prefix="", on_progress=on_progress
    )
    try:
        if dataset.folder:
            index.get_index_done()
        else:
            index.get_index_done(_CHUNK_SIZE, 0)
    except BaseException:
        index.close()
        raise
    return index


def _written(dataset: Dataset, folder: Path) -> Path:
    file = folder / "corpus.jsonl"
    if not file.exists():
        private_folder(folder)
        with replacing(file, private=True) as lines:
            for document in dataset.documents:
                keys = {DOCUMENT_KEY: document.key, dataset.key_field: document.key}
                metadata = {**document.metadata, "title": document.title, **keys}
                line = json.dumps({"text": document.text, "metadata": metadata}, ensure_ascii=False) + "\n"
                lines.write(line.encode("utf-8"))
    return folder


@dataclass(eq=False)
class Services:
    """Services of a run, opened in a ``with`` block; all systems and repeats share them."""

    experiment: Experiment
    dataset: Dataset
    settings: Settings
    spending: Payer
    """Keeps all calls within the run's limits."""
    admissions: Admissions | None = None
    """Rate limits that other processes share; None for those of this process."""
    is_indexed: bool = False
    """Whether another process has indexed the corpus of the data set."""
    on_progress: StageProgress | None = None
    """Called with (done, total, stage) while the corpus is indexed or a local model is loaded."""

    def __post_init__(self) -> None:
        self._prompts = self.experiment.prompts or DEFAULT_PROMPTS
        self._of_systems = {label: self.experiment.of_system(label) for label in self.experiment.systems}
        self._resources = ExitStack()
        self._builder = ServiceBuilder(
            keys=GivenKeys(config=self.experiment),
            settings=self.settings,
            prompts=self._prompts,
            gate=CallGate(self.settings.max_concurrency),
            open_index=self._open_searched,
            open_graph=self._open_or_make,
            admissions=self.admissions,
            on_progress=self.on_progress,
        )
        self._filter_llm: CacheableLLM | None = None
        self._tools: tuple[Tool, ...] = ()
        self._models: list[CacheableLLM] = []
        self._adapted_elsewhere: dict[str, list[str]] = {}
        self._gold: GoldTable | None = None
        self._retriever: ChunkRetriever | None = None
        self._graph: GraphList | None = None
        self._links: LinkedChunks | None = None
        self.own_retriever: ChunkRetriever | None = None
        """The retriever, if it is one of one's own, or of a prebuilt index."""
        self.index: Index | None = None
        """The open index; None without a system that retrieves."""
        self.gold_found: dict[str, object] = {}
        """The gold documents that a collection of others lacks; see ``gold.gold_in``."""
        self._judges: dict[str, AnyJudge] = {}
        self.local_models: frozenset[str] = frozenset()
        """Names of the chat models that run in this process."""

    def __enter__(self) -> Services:
        try:
            self._open()
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._resources.close()

    def context(self, system: str, repeat: int, *, fresh: bool = False) -> RagContext:
        """Return the context of one system; each repeat has model replies of its own.

        ``fresh`` reads no cached reply that was there before, except in replay mode.
        """
        cache = without_reading(self.experiment.cache) if fresh else self.experiment.cache
        chosen, experiment = find_system(system_name(system)), self._of_systems[system]
        builder = replace(self._builder, keys=GivenKeys(config=experiment))
        noise = noise_of(experiment.judge) if chosen.judges else None
        judge: AnyJudge | None = None
        if noise is not None and self._gold is not None:
            noise = noise.of_repeat(repeat)
            judge = noisy_judge(self._gold, noise)
        elif chosen.judges:
            judge = self._create_judge(self._cached(self._judge_llm, repeat, cache), builder)
        return builder.context(
            reader=builder.tuned(self._cached(self._reader, repeat, cache)),
            retriever=self._retriever_of(system) if chosen.retrieves else None,
            judge=judge,
            links=self._links if judge is not None and follows_links(experiment.expansion) else None,
            writer=NoisyWriter(self._gold, noise) if noise and self._gold else None,
            insert_block=self._insert_block(repeat, cache) if chosen.retrieves and experiment.insert_block else None,
            prices=load_prices(self.settings.home).with_free(self.local_models),
            tools=self._tools if chosen.uses_tools else (),
        )

    def fingerprints(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield the fingerprints of the graphs, of the judges, and of the parts of one's own, by what has them."""
        if self.own_retriever is not None:
            yield "retriever", self.own_retriever.fingerprint()
        if self._graph is not None:
            yield "search_graph", self._graph.fingerprint()
        if self._links is not None:
            yield "links", self._links.fingerprint()
        yield from ((part, judge.fingerprint()) for part, judge in self._judges.items())
        if self._judges and source_of_llm(self.settings.judge_spec):
            yield "judge_model", model_fingerprint(self._judge_llm)
        if source_of_llm(self.settings.llm_spec):
            yield "reader", model_fingerprint(self._reader)
        for label, experiment in self._of_systems.items():
            if name_in(experiment.policy) not in POLICIES:
                part = opened_part("policy", label, is_own=experiment.policy != self.experiment.policy)
                yield part, create_policy(experiment.policy).fingerprint()

    def adaptations(self) -> dict[str, list[str]]:
        """Return what the models of the run have refused by name, in words, by model and endpoint.

        Of other processes it is what ``note_adaptations`` was given.
        """
        here = told_adaptations((llm.endpoint, llm.model) for llm in self._models)
        return joined_adaptations(self._adapted_elsewhere, here)

    def note_adaptations(self, told: Mapping[str, Sequence[str]]) -> None:
        """Take what the models have refused in another process."""
        self._adapted_elsewhere = joined_adaptations(self._adapted_elsewhere, told)

    def _open(self) -> None:
        experiment, settings = self.experiment, self.settings
        self._tools = self._builder.create_tools()
        self._gold = gold_table(self.dataset) if self._simulated_judge() else None
        if any(map(retrieves, map(system_name, experiment.systems))):
            self._retriever = self._open_retriever()
        self._reader = self._judge_llm = self._builder.create_llm(settings.llm_spec)
        named = {settings.llm_spec: self._reader}
        if judging := [label for label in experiment.systems if find_system(system_name(label)).judges]:
            self._judge_llm = self._model(settings.judge_spec, named)
            for label in judging:
                chosen = self._of_systems[label]
                part = opened_part("judge", label, is_own=chosen.judge != experiment.judge)
                if part not in self._judges:
                    builder = replace(self._builder, keys=GivenKeys(config=chosen))
                    self._judges[part] = self._create_judge(self._judge_llm, builder)
            if any(follows_links(self._of_systems[label].expansion) for label in judging):
                self._links = self._builder.open_links(self._retriever)
        if any(each.insert_block for each in self._of_systems.values()):
            self._filter_llm = self._model(experiment.insert_block_llm or settings.judge_spec, named)
        self._models = [*named.values()]
        self.local_models = frozenset(llm.model for spec, llm in named.items() if is_local(spec))
        self._cache = self._resources.enter_context(CompletionCache(settings.home / "completions.sqlite"))

    def _model(self, spec: Address, named: dict[Address, CacheableLLM]) -> CacheableLLM:
        """Return the model of a spec, one for all uses."""
        if spec not in named:
            named[spec] = self._builder.create_llm(spec)
        return named[spec]

    def _open_retriever(self) -> ChunkRetriever:
        check_beside(self.experiment.retriever, self.experiment)
        retriever = self._builder.open_retriever()
        if self.experiment.retriever is None:
            assert isinstance(retriever, Retriever)
            self._graph = retriever.graph if isinstance(retriever.graph, GraphList) else None
            return retriever
        self.own_retriever = retriever
        index = retriever.vector_store if isinstance(retriever, Retriever) else None
        if name_in(self.experiment.dataset) == OWN_QUESTIONS and isinstance(index, PrebuiltIndex):
            check_gold_known(self.dataset, index.corpus)
        return retriever

    def _open_or_make(self, graph: GraphList | LinkedChunks, kind: str) -> None:
        """Open a graph; that of a data set's own corpus is made here where there is none and no model is needed."""
        try:
            graph.open()
        except CollectionError:
            if self.index is None or self.experiment.collection is not None or kind not in GRAPHS:
                raise
            build_graph(self.index, kind, self.settings.home, self.on_progress)

    def _open_searched(self) -> Index:
        self.index = self._open_index()
        has_gold = any(question.supporting for question in self.dataset.questions)
        is_checked = self.is_indexed or self.experiment.retriever is not None
        if self.experiment.collection is not None and has_gold and not is_checked:
            self.gold_found = gold_in(self.dataset, self.index)
            self._check_gold(self.gold_found)
        return self.index

    def _check_gold(self, found: Mapping[str, object]) -> None:
        """Check that some gold document is searched, where it is needed or where its names are the user's.

        Raises:
            SettingsError: None is.
        """
        if found["missing"] != found["documents"]:
            return
        if name_in(self.experiment.dataset) == OWN_QUESTIONS:
            raise SettingsError(
                f"{gold_words(found)} Name them as `{self.dataset.key_field}` of its chunks does, or take the column "
                "of supporting documents out."
            )
        if judge := self._simulated_judge():
            raise SettingsError(f"{gold_words(found)} The judge {judge!r} needs them: take another.")

    def _simulated_judge(self) -> str:
        """Return the first judge that needs gold documents; "" for none."""
        judges = (each.judge for each in (self.experiment, *self._of_systems.values()))
        return next((judge for judge in judges if noise_of(judge)), "")

    def _open_index(self) -> Index:
        collection = self.experiment.collection
        if collection is None and self.is_indexed:
            return self._resources.enter_context(self._index_of(collection_of(self.dataset)))
        if collection is None:
            index = open_corpus(self.dataset, self.settings, on_progress=self.on_progress)
            return self._resources.enter_context(index)
        index = self._resources.enter_context(self._index_of(collection))
        try:
            index.info()
        except CollectionError as error:
            hint = f" For the folder, write ./{collection}." if Path(collection).is_dir() else ""
            raise CollectionError(f"{error}{hint}") from error
        return index

    def _index_of(self, collection: str) -> Index:
        return open_index(collection, self.settings, admissions=self.admissions)

    def _insert_block(self, repeat: int, cache: CacheMode) -> InsertBlockFilter | None:
        if self._filter_llm is None:
            return None
        llm = self._builder.bounded(self._cached(self._filter_llm, repeat, cache))
        return InsertBlockFilter(llm, prompts=self._prompts)

    def _create_judge(self, llm: ChatLLM, builder: ServiceBuilder) -> AnyJudge:
        return builder.create_judge(llm, spec=self.settings.judge_spec, gold=self._gold)

    def _retriever_of(self, system: str) -> ChunkRetriever | None:
        """Return the retriever with the arguments that a system has of its own."""
        changes = search_arguments(given := GivenKeys(config=read_variant(system).options))
        return searching(self._retriever, changes, given.names(), of="a system") if changes else self._retriever

    def _cached(self, llm: CacheableLLM, repeat: int, cache: CacheMode) -> CachedLLM:
        billed_as = f"{LOCAL}{llm.model}" if llm.model in self.local_models else llm.model
        limited = LimitedLLM(llm, self.spending, billed_as=billed_as)
        return CachedLLM(limited, self._cache, endpoint=llm.endpoint, mode=cache, repeat=repeat)
