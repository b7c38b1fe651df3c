"""What the systems of a run share: index, models, their cache and the cap on calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from ...graphs.rag.result import Mode
from ...graphs.systems.registry import SYSTEMS
from ...graphs.threads.context import Limits, RagContext
from ...modules.calls.prices import LOCAL
from ...modules.index.index import Index
from ...modules.judge.contract import Judge
from ...modules.judge.factory import create_judge
from ...modules.llm.cache import CachedLLM, CacheMode, CompletionCache, without_reading
from ...modules.llm.endpoint import CallGate, ChatLLM, EndpointLLM
from ...modules.llm.factory import create_judge_llm, create_llm, is_local
from ...modules.llm.sampling import sampled
from ...modules.retriever.retriever import Retriever
from ...modules.settings import Settings
from ..datasets.questions import Dataset
from .corpora import open_collection, open_corpus
from .experiment import RETRIEVING, Experiment
from .limited_llm import LimitedLLM
from .spending import Spending


class Services:
    """Opened in a ``with``; all systems and repeats of a run take what they need from it."""

    def __init__(
        self,
        experiment: Experiment,
        dataset: Dataset,
        settings: Settings,
        *,
        spending: Spending,
        on_progress: Callable[[int, int, str], None] | None = None,
    ) -> None:
        """``spending`` keeps all calls within the run's limits.

        ``on_progress`` is called with (done, total, stage) while the corpus is indexed or a local model is made ready.
        """
        self.experiment = experiment
        self.dataset = dataset
        self.settings = settings
        self._spending = spending
        self._on_progress = on_progress
        self._resources = ExitStack()
        self._retriever: Retriever | None = None
        self.index: Index | None = None
        """What is searched, once it is open; None where no system retrieves."""
        self.judge: Judge | None = None
        """How chunks are judged, without the cache; None where no system judges."""
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

    def context(self, system: Mode, repeat: int, *, fresh: bool = False) -> RagContext:
        """The services of one system; each repeat has model answers of its own.

        ``fresh`` takes no answer from the cache that was there before, unless the run is a replay.
        """
        cache = without_reading(self.experiment.cache) if fresh else self.experiment.cache
        judge = self._create_judge(self._cached(self._judge_llm, repeat, cache)) if SYSTEMS[system].judges else None
        limits = Limits(
            max_rec_depth=self.experiment.max_rec_depth,
            max_llm_calls=self.experiment.max_llm_calls,
            judge_leaves=self.experiment.judge_leaves,
        )
        retriever = self._retriever if system in RETRIEVING else None
        return RagContext(
            reader=sampled(self._cached(self._reader, repeat, cache), self.settings.temperature),
            retriever=retriever,
            judge=judge,
            limits=limits,
            strategy=self.experiment.strategy,
        )

    def _open(self) -> None:
        experiment, settings = self.experiment, self.settings
        if RETRIEVING.intersection(experiment.systems):
            self.index = self._resources.enter_context(self._open_index())
            self._retriever = Retriever(
                self.index,
                topk=experiment.topk,
                search_type=experiment.search_type,
                ranker_type=experiment.ranker_type,
                ranker_params=experiment.ranker_params,
            )
            self._retriever.check_args()
        gate = CallGate(settings.max_concurrency)
        self._reader = create_llm(settings.llm_spec, settings, gate, on_progress=self._on_progress)
        named = [(settings.llm_spec, self._reader)]
        if any(SYSTEMS[system].judges for system in experiment.systems):
            self._judge_llm = create_judge_llm(self._reader, settings, gate, on_progress=self._on_progress)
            named.append((settings.judge_spec, self._judge_llm))
            self.judge = self._create_judge(self._judge_llm)
        self.local_models = frozenset(llm.model for spec, llm in named if is_local(spec))
        self._cache = self._resources.enter_context(CompletionCache(settings.home / "completions.sqlite"))

    def _open_index(self) -> Index:
        if self.experiment.corpus is not None:
            return open_collection(self.experiment.corpus, self.settings)
        return open_corpus(self.dataset, self.settings, on_progress=self._on_progress)

    def _create_judge(self, llm: ChatLLM) -> Judge:
        return create_judge(self.experiment.judge, llm, spec=self.settings.judge_spec, settings=self.settings)

    def _cached(self, llm: EndpointLLM, repeat: int, cache: CacheMode) -> CachedLLM:
        billed_as = f"{LOCAL}{llm.model}" if llm.model in self.local_models else llm.model
        limited = LimitedLLM(llm, self._spending, endpoint=llm.endpoint, billed_as=billed_as)
        return CachedLLM(limited, self._cache, endpoint=llm.endpoint, mode=cache, repeat=repeat)
