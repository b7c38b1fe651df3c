"""Rankers that reorder the hits of a coarse search: a rerank model, and selections of chunks that belong together."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..calls.usage import CallMeter
from ..errors import NoFailure, SearchArgumentError, SessionError
from .rerank import MODEL, PRE_PARAMS, RankerParams, RerankModel, check_params, create_reranker, model_of
from .selection import OBJECTIVES, RELEVANCE, SELECTIONS, candidates_of, greedy

if TYPE_CHECKING:
    from .contract import Searcher
    from .search import Hits, VectorField

logger = logging.getLogger(__name__)

PRE_TOPK = 10
SELECTION_PRE_TOPK, SELECTION_FACTOR = 20, 2
MOST_CANDIDATES = 1000
"""Most chunks to select from: time and memory grow with their square."""
MAX_A = 1e6

REORDERING = (MODEL, *SELECTIONS)
"""Values of ``ranker_type`` that come after a coarse search."""


@dataclass(frozen=True)
class Reordering:
    """The ranker of a retriever, as far as it reorders the hits of a coarse search; other rankers leave them."""

    ranker_type: str
    params: RankerParams
    topk: int
    fields: Mapping[str, VectorField]
    """Those of the collection."""
    search_fields: Sequence[str] | None
    """Names of those that are searched; None for defaults."""

    def check(self) -> None:
        """Check the parameters.

        Raises:
            SearchArgumentError: One is unknown or outside its range, or the collection has no vectors to compare.
        """
        _ = self.coarse_topk, self.compared()
        if self.ranker_type in SELECTIONS:
            selection_params(self.ranker_type, self.params)

    @property
    def coarse_topk(self) -> int:
        """The number of hits of the search in Milvus: ``topk``, or the candidates of what reorders them.

        Raises:
            SearchArgumentError: ``pre_topk`` is not allowed.
        """
        if self.ranker_type not in REORDERING:
            return self.topk
        selects = self.ranker_type in SELECTIONS
        most = MOST_CANDIDATES if selects else math.inf
        usual = min(max(SELECTION_PRE_TOPK, SELECTION_FACTOR * self.topk), MOST_CANDIDATES) if selects else PRE_TOPK
        pre_topk = self.params.get("pre_topk", max(usual, self.topk))
        if not isinstance(pre_topk, int) or isinstance(pre_topk, bool) or not self.topk <= pre_topk <= most:
            to = f"to {MOST_CANDIDATES:,}" if selects else "on"
            raise SearchArgumentError(
                f"ranker_params pre_topk={pre_topk!r} is not allowed. Give a whole number from topk={self.topk} {to}."
            )
        return pre_topk

    def compared(self) -> list[VectorField]:
        """Return the field whose vectors a selection compares: the first dense one that is searched, else of all.

        Empty for other rankers.

        Raises:
            SearchArgumentError: The collection has no dense field.
        """
        if self.ranker_type not in SELECTIONS:
            return []
        searched = [self.fields[name] for name in self.search_fields or () if name in self.fields]
        dense = [field for field in (*searched, *self.fields.values()) if field.kind == "dense"]
        if not dense:
            raise SearchArgumentError(
                f"ranker_type={self.ranker_type!r} compares the vectors of chunks, and the collection has no dense "
                "field. Take rrf, weighted or model, or index with an embedder."
            )
        return dense[:1]

    def selected(self, coarse: Hits, searcher: Searcher) -> Hits:
        """Choose up to ``topk`` of the coarse hits; returns them with their gains, in the order of choice.

        A chunk without a vector, such as one that was deleted meanwhile, counts as similar to no other.

        Raises:
            CollectionError: The vectors cannot be read.
        """
        if not coarse:
            return []
        ids = [str(chunk.metadata["chunk_id"]) for chunk, _ in coarse]
        vectors = searcher.vectors(self.compared()[0].name, ids)
        candidates = candidates_of([score for _, score in coarse], [vectors.get(chunk_id) for chunk_id in ids])
        objective = OBJECTIVES[self.ranker_type](candidates, selection_params(self.ranker_type, self.params))
        return [(coarse[place][0], gain) for place, gain in greedy(objective, len(coarse), self.topk)]


def selection_params(ranker_type: str, params: RankerParams) -> dict[str, float]:
    """Return the parameters of a selection, the defaults in place of those that are not given.

    Raises:
        SearchArgumentError: A parameter is unknown or outside its range.
    """
    defaults = SELECTIONS[ranker_type]
    check_params(params, {*defaults, *PRE_PARAMS}, ranker_type)
    return {name: _checked(name, params.get(name, default)) for name, default in defaults.items()}


def _checked(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name == RELEVANCE and 0 <= value <= 1:
            return float(value)
        if name != RELEVANCE and 0 < value <= MAX_A:
            return float(value)
    allowed = "from 0 to 1" if name == RELEVANCE else f"above 0, up to {MAX_A:,.0f}"
    raise SearchArgumentError(f"ranker_params {name}={value!r} is not allowed. Give a number {allowed}.")


class RerankModels:
    """Opens the rerank model of ``ranker_params``, and keeps the last one."""

    def __init__(self) -> None:
        self._last: tuple[tuple[str, float], RerankModel] | None = None

    def of(self, params: RankerParams) -> RerankModel:
        """Return the model.

        Raises:
            SearchArgumentError: The parameters name no model, or something else than is allowed.
            SettingsError: The key of the service is missing.
        """
        model, timeout_s = model_of(params)
        if not isinstance(model, str):
            return model
        last = self._last  # a copy of a retriever shares it, and may search in another thread
        if last is None or last[0] != (model, timeout_s):
            last = self._last = ((model, timeout_s), create_reranker(model, timeout_s=timeout_s))
        return last[1]


def reranked(coarse: Hits, model: RerankModel, query: str, *, topk: int, meter: CallMeter) -> Hits | None:
    """Return up to ``topk`` of the coarse hits by the scores of a model, best first; None if the model failed.

    The failure is logged and recorded by ``meter``. Without hits no model is asked.
    """
    if not coarse:
        return []
    started = time.perf_counter()
    try:
        order = model.rerank(query, [chunk.page_content for chunk, _ in coarse], topk)
        hits = [(coarse[position][0], float(score)) for position, score in order]
    except Exception as error:
        if isinstance(error, NoFailure | SessionError):
            raise
        logger.warning("The rerank model %s failed, the coarse order is kept: %s", model.name, error)
        meter.record(kind="rerank", model=model.name, started=started, error=f"{type(error).__name__}: {error}")
        return None
    meter.record(kind="rerank", model=model.name, started=started)
    return sorted(hits, key=lambda hit: -hit[1])[:topk]
