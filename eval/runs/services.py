"""Services that the systems of a run share: indexed corpus, models, their cache, the limit on calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ...graphs.config.given_keys import GivenKeys
from ...graphs.config.limits import Limits
from ...graphs.search.expansion_rule import follows_links
from ...graphs.search.policies.registry import POLICIES, create_policy
from ...graphs.search.stop import create_stop
from ...graphs.systems.registry import find_system, retrieves
from ...graphs.threads.context import RagContext
from ...graphs.threads.overrides import search_arguments
from ...modules.calls.prices import LOCAL, load_prices
from ...modules.calls.prompts import DEFAULT_PROMPTS
from ...modules.calls.usage import Payer
from ...modules.config.models import CacheMode
from ...modules.errors import CollectionError, SettingsError
from ...modules.index.factory import open_index
from ...modules.index.file_parsers import LoadLimits
from ...modules.index.index import Index
from ...modules.judge.contract import AnyJudge
from ...modules.judge.factory import create_judge, noise_of
from ...modules.judge.gold import GoldTable
from ...modules.judge.noisy import NoisyWriter
from ...modules.llm.cache import CacheableLLM, CachedLLM, CompletionCache, without_reading
from ...modules.llm.call_gate import CallGate
from ...modules.llm.contract import ChatLLM, model_fingerprint
from ...modules.llm.factory import create_judge_llm, create_llm, is_local, source_of_llm
from ...modules.llm.rate_limit import Admissions
from ...modules.llm.tuned import bounded, tuned
from ...modules.llm.wire.adaptations import joined_adaptations, told_adaptations
from ...modules.prebuilt.files import is_prebuilt
from ...modules.progress import StageProgress
from ...modules.reader.evidence_choice import EvidenceChoice
from ...modules.retriever.contract import ChunkRetriever
from ...modules.retriever.graph_list import GraphList
from ...modules.retriever.linked_chunks import LinkedChunks, linked_chunks_of
from ...modules.retriever.own import check_beside, create_own_retriever, needs_index, prebuilt_retriever
from ...modules.retriever.prebuilt import PrebuiltIndex
from ...modules.retriever.retriever import Retriever
from ...modules.retriever.search import DOCUMENT_KEY
from ...modules.settings import Settings
from ...modules.specs import name_in
from ...modules.storage.atomic import replacing
from ...modules.structure.building import GRAPHS, build_graph
from ...modules.structure.links import KIND
from ...modules.tools.factory import create_tools
from ...modules.tools.tool import Tool
from ...modules.trust.private import private_folder
from ..datasets.questions import Dataset
from ..datasets.registry import OWN_QUESTIONS
from .experiment import Experiment
from .gold import check_gold_of, gold_table, refuse_unknown_gold
from .limits import LimitedLLM
from .manifest import Opened

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
        self._keys = GivenKeys(config=self.experiment)
        self._resources = ExitStack()
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
        self.judge: AnyJudge | None = None
        """The judge, without the cache; None without a system that judges."""
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
        noise = noise_of(self.experiment.judge)
        judge = self._create_judge(self._cached(self._judge_llm, repeat, cache)) if find_system(system).judges else None
        return RagContext(
            reader=bounded(
                tuned(
                    self._cached(self._reader, repeat, cache),
                    temperature=self.settings.temperature,
                    thinking=self.settings.thinking,
                ),
                self.settings.llm_max_tokens,
            ),
            context_tokens=self.settings.llm_max_tokens,
            retriever=self._retriever if retrieves(system) else None,
            judge=judge,
            links=self._links if judge is not None else None,
            writer=NoisyWriter(self._gold, noise) if noise and self._gold and judge else None,
            limits=self.experiment.part(Limits),
            policy=create_policy(self.experiment.policy),
            stop=create_stop(self.experiment.stop),
            evidence=self.experiment.part(EvidenceChoice),
            strategy=self.experiment.strategy,
            prompts=self._prompts,
            prices=load_prices(self.settings.home).with_free(self.local_models),
            tools=self._tools if find_system(system).uses_tools else (),
        )

    def fingerprints(self) -> Iterator[tuple[Opened, Mapping[str, str]]]:
        """Yield the fingerprints of the graphs, of the judge, and of the parts of one's own."""
        if self.own_retriever is not None:
            yield "retriever", self.own_retriever.fingerprint()
        if self._graph is not None:
            yield "search_graph", self._graph.fingerprint()
        if self._links is not None:
            yield "links", self._links.fingerprint()
        if self.judge is not None:
            yield "judge", self.judge.fingerprint()
            if source_of_llm(self.settings.judge_spec):
                yield "judge_model", model_fingerprint(self._judge_llm)
        if source_of_llm(self.settings.llm_spec):
            yield "reader", model_fingerprint(self._reader)
        if name_in(self.experiment.policy) not in POLICIES:
            yield "policy", create_policy(self.experiment.policy).fingerprint()

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
        self._tools = create_tools(experiment.tools, settings)
        self._gold = gold_table(self.dataset) if noise_of(experiment.judge) else None
        if any(map(retrieves, experiment.systems)):
            self._retriever = self._open_retriever()
        gate = CallGate(settings.max_concurrency)
        shared, report = self.admissions, self.on_progress
        self._reader = create_llm(settings.llm_spec, settings, gate, admissions=shared, on_progress=report)
        named = [(settings.llm_spec, self._reader)]
        if any(find_system(system).judges for system in experiment.systems):
            self._judge_llm = create_judge_llm(self._reader, settings, gate, admissions=shared, on_progress=report)
            named.append((settings.judge_spec, self._judge_llm))
            self.judge = self._create_judge(self._judge_llm)
            if follows_links(experiment.expansion):
                self._links = self._open_links()
        self._models = [llm for _, llm in named]
        self.local_models = frozenset(llm.model for spec, llm in named if is_local(spec))
        self._cache = self._resources.enter_context(CompletionCache(settings.home / "completions.sqlite"))

    def _open_retriever(self) -> ChunkRetriever:
        experiment = self.experiment
        arguments = {"topk": experiment.topk, "search_type": experiment.search_type, **search_arguments(self._keys)}
        if experiment.retriever is not None:
            check_beside(experiment.retriever, experiment)
            if is_prebuilt(experiment.retriever):
                self.own_retriever = retriever = prebuilt_retriever(
                    experiment.retriever,
                    self.settings,
                    admissions=self.admissions,
                    on_progress=self.on_progress,
                    **arguments,
                )
                if name_in(experiment.dataset) == OWN_QUESTIONS and isinstance(retriever.vector_store, PrebuiltIndex):
                    refuse_unknown_gold(self.dataset, retriever.vector_store.corpus)
                return self.own_retriever
            if needs_index(experiment.retriever):
                self.index = self._open_index()
            self.own_retriever = create_own_retriever(
                experiment.retriever, index=self.index, topk=experiment.topk, settings=self.settings
            )
            return self.own_retriever
        self.index = self._open_index()
        if self._is_of_others and name_in(experiment.dataset) == OWN_QUESTIONS and not self.is_indexed:
            check_gold_of(self.dataset, self.index)
        self._graph = self._open_graph_list(self.index)
        retriever = Retriever(self.index, graph=self._graph, **arguments)
        retriever.check_args()
        return retriever

    @property
    def _is_of_others(self) -> bool:
        """Whether a collection is searched that was not made for the data set."""
        return self.experiment.corpus is not None and self.experiment.corpus_folder is None

    def _open_graph_list(self, index: Index) -> GraphList | None:
        if self.experiment.search_graph is None:
            return None
        graph = GraphList(index, self.settings.home, kind=self.experiment.search_graph)
        self._make_if_missing(graph.open, graph.kind)
        return graph

    def _open_links(self) -> LinkedChunks:
        links = linked_chunks_of(self._retriever, self.settings.home)
        self._make_if_missing(links.open, KIND)
        return links

    def _make_if_missing(self, open_graph: Callable[[], object], kind: str) -> None:
        """Open a graph; that of a data set's own corpus is made here where there is none and no model is needed."""
        try:
            open_graph()
        except CollectionError:
            if self.index is None or self._is_of_others or kind not in GRAPHS:
                raise
            build_graph(self.index, kind, self.settings.home, self.on_progress)

    def _open_index(self) -> Index:
        if self.is_indexed and (self.experiment.corpus is None or self.experiment.corpus_folder is not None):
            return self._resources.enter_context(self._index_of(collection_of(self.dataset)))
        if self.experiment.corpus is None or self.experiment.corpus_folder is not None:
            index = open_corpus(self.dataset, self.settings, on_progress=self.on_progress)
            return self._resources.enter_context(index)
        index = self._resources.enter_context(self._index_of(self.experiment.corpus))
        try:
            index.info()
        except CollectionError as error:
            is_folder = Path(self.experiment.corpus).is_dir()
            hint = f" For the folder, write ./{self.experiment.corpus}." if is_folder else ""
            raise CollectionError(f"{error}{hint}") from error
        return index

    def _index_of(self, collection: str) -> Index:
        return open_index(collection, self.settings, admissions=self.admissions)

    def _create_judge(self, llm: ChatLLM) -> AnyJudge:
        settings = self.settings
        return create_judge(
            self.experiment.judge,
            bounded(llm, settings.llm_max_tokens),
            spec=settings.judge_spec,
            settings=settings,
            prompts=self._prompts,
            gold=self._gold,
            admissions=self.admissions,
        )

    def _cached(self, llm: CacheableLLM, repeat: int, cache: CacheMode) -> CachedLLM:
        billed_as = f"{LOCAL}{llm.model}" if llm.model in self.local_models else llm.model
        limited = LimitedLLM(llm, self.spending, billed_as=billed_as)
        return CachedLLM(limited, self._cache, endpoint=llm.endpoint, mode=cache, repeat=repeat)
