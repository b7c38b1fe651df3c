"""The retriever: the best chunks of a collection for a query."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_milvus import Milvus
from pydantic import ConfigDict, PrivateAttr
from pymilvus.client.abstract import BaseRanker

from ..addresses import with_addresses
from ..calls.usage import CallMeter
from ..embedding.embedder import embedder_name
from ..errors import SearchArgumentError
from ..index.index import Index
from ..wanted import in_thread
from .graph_list import GraphList, graph_list_of
from .prebuilt import PrebuiltIndex
from .reordering import REORDERING, Reordering, RerankModels, reranked
from .rerank import MODEL, RankerParams, RerankModel, fusion_of
from .search import (
    FieldSearch,
    Hits,
    SearchParams,
    VectorField,
    as_documents,
    best_hits,
    check_limits,
    chosen_fields,
    params_by_field,
    query_data,
)
from .searched import OpenCollection, Searched
from .selection import SELECTIONS
from .subclasses import check_overrides, subclass_fingerprint

_PLAIN_ATTRIBUTES = ("search_type", "topk", "ranker_type", "score_threshold", "rerank_input_top_n", "expr")


class Retriever(BaseRetriever):
    """A retriever over one collection or prebuilt index.

    Attributes may be set between searches; every search checks them.

    ::

        retriever = Retriever(index, topk=5, search_type="hybrid")
        documents = retriever.invoke("gasket of a Rating F40 flange")

    A subclass overrides ``search``, through which every search goes, and may have fields of its own::

        class NewestFirst(Retriever):
            field: str = "year"

            def search(self, query, *, meter):
                hits = super().search(query, meter=meter)
                return sorted(hits, key=lambda hit: -hit[0].metadata.get(self.field, 0))

        retriever = NewestFirst(index, topk=5, field="edition")

    Args:
        vector_store: An ``Index``, the LangChain vector store of a collection (``index.vector_store``), or an index
            that others have built (``open_prebuilt``).
        topk: Most chunks to return.
        search_fields: Vector fields to search; None for the first dense, the first sparse, or (hybrid) all fields.
        search_type: ``dense`` (embeddings), ``sparse`` (words, BM25) or ``hybrid`` (several fields, fused).
        search_params: Search parameters of Milvus, such as ``{"params": {"ef": 128}}``: one mapping a field, or a
            single one for one field; None for defaults.
        ranker_type: ``rrf`` or ``weighted`` fuse the fields of a hybrid search. After a coarse search of any type
            ``model`` reorders the hits by a rerank model; ``mmr``, ``facility_location`` and ``log_det`` choose hits
            that are relevant and unlike each other (see ``selection``), by the vectors of the first dense field.
        ranker_params: For rrf ``k`` (60); for weighted ``weights``, one a field; for model ``model`` (a spec, see
            ``create_reranker``, or a ``RerankModel``) and ``timeout_s``; for selections the weight of ``relevance``
            (0 to 1; mmr 0.9, facility_location 0.3, log_det 0.5) and for log_det ``a`` (1). For the coarse search
            ``pre_topk`` (model 10, selections 20 or 2 * topk, at least topk), ``pre_ranker_type`` (rrf) and
            ``pre_ranker_params``.
        score_threshold: Least score of a returned chunk.
        rerank_input_top_n: Most chunks of the coarse search to reorder or choose from; None for all.
        graph: Kind of a graph of the collection, such as "entities" (``judgetree index --graph entities``), or a
            ``GraphList``: what it ranks is fused as one more list, the last in ``weights``.
        expr: Milvus filter for chunks, such as one of ``index.content.text_in``.
        distinct_texts: Return one of several chunks with the same text, with the others' sources as ``also_in`` in its
            metadata.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    vector_store: Index | Milvus | PrebuiltIndex
    topk: int = 3
    search_fields: list[str] | None = None
    search_type: str = "dense"
    search_params: Sequence[SearchParams] | SearchParams | None = None
    ranker_type: str = "rrf"
    ranker_params: RankerParams | None = None
    score_threshold: float | None = None
    rerank_input_top_n: int | None = None
    expr: str = ""
    graph: str | GraphList | None = None
    distinct_texts: bool = True

    _searched: Searched = PrivateAttr(default_factory=Searched)
    _models: RerankModels = PrivateAttr(default_factory=RerankModels)

    def __init__(  # noqa: PLR0913, PLR0917 - the documented signature, which pydantic's own is not
        self,
        vector_store: Index | Milvus | PrebuiltIndex,
        topk: int = 3,
        search_fields: list[str] | None = None,
        search_type: str = "dense",
        search_params: Sequence[SearchParams] | SearchParams | None = None,
        ranker_type: str = "rrf",
        ranker_params: RankerParams | None = None,
        score_threshold: float | None = None,
        rerank_input_top_n: int | None = None,
        expr: str = "",
        *,
        graph: str | GraphList | None = None,
        distinct_texts: bool = True,
        **own: Any,
    ) -> None:
        if unknown := sorted(own.keys() - type(self).model_fields):
            raise TypeError(f"{type(self).__name__} has no field {', '.join(unknown)}.")
        super().__init__(  # type: ignore[call-arg]  # the type checker takes the base's fields for all
            vector_store=vector_store,
            topk=topk,
            search_fields=search_fields,
            search_type=search_type,
            search_params=search_params,
            ranker_type=ranker_type,
            ranker_params=with_addresses(ranker_params) if isinstance(ranker_params, Mapping) else ranker_params,
            score_threshold=score_threshold,
            rerank_input_top_n=rerank_input_top_n,
            expr=expr,
            graph=graph,
            distinct_texts=distinct_texts,
            **own,
        )

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Refuse a subclass of which some searches would be its own and others not."""
        super().__init_subclass__(**kwargs)
        check_overrides(cls)

    def search(self, query: str, *, meter: CallMeter) -> Hits:
        """Search for a query; every search goes through here, so a subclass overrides this method.

        Graphs call it in a thread. Embedding and rerank calls are recorded by ``meter``.
        """
        # A cancelled asearch leaves its thread running, which must neither use a closed index nor reopen it.
        with self._searched.entered(self.vector_store):
            self.check_args()
            if self.ranker_type == MODEL:
                return self.search_with_rerank_model(query, meter=meter)
            if self.ranker_type in SELECTIONS:
                return self.search_with_selection(query, meter=meter)
            return self._above_threshold(self._coarse_search(query, meter))

    def get_similar_chunk_with_score(self, query: str) -> Hits:
        """Return the best chunks with their scores, best first; higher is better for every backend and metric.

        Costs one query embedding (unless sparse), one Milvus request, and with the model ranker one rerank call.
        The range of a score depends on the search: cosine in [-1, 1], BM25 from 0 up, RRF in (0, fields / k),
        weighted in [0, 1], a rerank model its own, a selection's gains. No hit: an empty list.

        Raises:
            SearchArgumentError: An attribute does not fit the collection or the search type.
            CollectionError: The collection cannot be searched.
            ModelCallError: The query could not be embedded.
        """
        return self.search(query, meter=_unread_meter())

    async def asearch(self, query: str, *, meter: CallMeter) -> Hits:
        """Search in a thread; embedding and rerank calls are recorded by ``meter``."""
        return await in_thread(self.search, query, meter=meter)

    async def aembed(self, question: str) -> list[float]:
        """Return the vector of a question from the embedder of the first dense field, in one embedding.

        Raises:
            SearchArgumentError: The collection has no dense field.
            ModelCallError: The question could not be embedded.
        """
        field = self._check_args("dense")[0]
        return cast(list[float], await asyncio.to_thread(query_data, field, question, _unread_meter()))

    def check_args(self) -> list[VectorField]:
        """Return the fields of a search, in order.

        Raises:
            SearchArgumentError: An attribute does not fit the collection or the search type.
            CollectionError: The collection cannot be read.
        """
        return self._check_args(self.search_type)

    def sparse_search(self, query: str, *, meter: CallMeter | None = None) -> Hits:
        """Search one sparse field by BM25, whatever ``search_type`` is."""
        return self._search_one("sparse", query, meter or _unread_meter())

    def dense_search(self, query: str, *, meter: CallMeter | None = None) -> Hits:
        """Search one dense field by its metric, whatever ``search_type`` is."""
        return self._search_one("dense", query, meter or _unread_meter())

    def hybrid_search(self, query: str, *, meter: CallMeter | None = None) -> Hits:
        """Search several fields and fuse their hits by the ranker, whatever ``search_type`` is."""
        return self._fused("hybrid", query, meter or _unread_meter())

    def search_with_rerank_model(self, query: str, *, meter: CallMeter | None = None) -> Hits:
        """Search coarsely, then order the hits by the scores of the rerank model.

        If the model fails, the coarse hits are returned without ``score_threshold``, which is meant for the model's
        scores. The failure is logged and recorded by the meter.
        """
        meter = meter or _unread_meter()
        model = self._models.of(self.ranker_params or {})
        coarse = self._coarse_search(query, meter)
        hits = reranked(coarse[: self.rerank_input_top_n], model, query, topk=self.topk, meter=meter)
        return coarse[: self.topk] if hits is None else self._above_threshold(hits)

    def search_with_selection(self, query: str, *, meter: CallMeter | None = None) -> Hits:
        """Search coarsely, then choose hits that are relevant and unlike each other; costs a further request.

        Scores are gains in the order of choice, which never rise; ``score_threshold`` is the least gain.
        """
        coarse = self._coarse_search(query, meter or _unread_meter())[: self.rerank_input_top_n]
        return self._above_threshold(self._reordering().selected(coarse, self._open().searcher))

    def fingerprint(self) -> dict[str, str]:
        """Return all that determines a query's hits: collection, content, embedders, attributes; no secret.

        A subclass has its class path, the digests of its source and of its own fields besides; what else changes its
        hits, it adds to this.

        Raises:
            SearchArgumentError: An attribute does not fit.
            CollectionError: The collection cannot be read.
        """
        digest = self._searched.content_digest(self.vector_store)
        fields = self.check_args()
        params = with_addresses(self.ranker_params or {})
        if isinstance(model := params.get("model"), RerankModel):
            params["model"] = model.name
        read = [*fields, *self._reordering().compared()]
        embedders = {field.name: embedder_name(field.embedder) for field in read if field.embedder is not None}
        attributes = {name: getattr(self, name) for name in _PLAIN_ATTRIBUTES} | {
            "search_fields": [field.name for field in fields],
            "search_params": self._params_by_field(fields),
            "ranker_params": params,
            "distinct_texts": self.distinct_texts,
            "embedders": embedders,
            "indexes": {field.name: [field.metric, field.index_type] for field in fields},
        }
        texts = {
            name: json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
            for name, value in attributes.items()
        }
        return {
            **self._open().names,
            "content": digest,
            **texts,
            **({"search_form": fields[0].form} if fields[0].form != "written" else {}),
            **({} if (graph := self._graph_list()) is None else {"graph": json.dumps(graph.fingerprint())}),
            **subclass_fingerprint(self, base=Retriever),
        }

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return as_documents(self.get_similar_chunk_with_score(query))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return as_documents(await self.asearch(query, meter=_unread_meter()))

    def _coarse_search(self, query: str, meter: CallMeter) -> Hits:
        if self.search_type == "hybrid" or self.graph is not None:
            return self._fused(self.search_type, query, meter)
        return self._search_one(self.search_type, query, meter)

    def _fused(self, search_type: str, query: str, meter: CallMeter) -> Hits:
        fields = self._check_args(search_type)
        requests = self._requests(fields, query, meter)
        fusion, searcher, graph = self._fusion(fields), self._open().searcher, self._graph_list()
        if graph is None:
            return self._best(lambda fetched: searcher.fused_search(requests, fusion, fetched))
        return self._best(lambda fetched: graph.fused_search(searcher, requests, fusion, query, fetched))

    def _search_one(self, search_type: str, query: str, meter: CallMeter) -> Hits:
        fields = self._check_args(search_type)
        searcher, requests = self._open().searcher, self._requests(fields, query, meter)
        return self._best(lambda fetched: searcher.search(requests[0], fetched))

    def _best(self, search: Callable[[int], Hits]) -> Hits:
        return best_hits(search, self._reordering().coarse_topk, distinct=self.distinct_texts)

    def _above_threshold(self, hits: Hits) -> Hits:
        return [hit for hit in hits if self.score_threshold is None or hit[1] >= self.score_threshold]

    def _requests(self, fields: Sequence[VectorField], query: str, meter: CallMeter) -> list[FieldSearch]:
        params = self._params_by_field(fields)
        return [
            FieldSearch(field=field, data=query_data(field, query, meter), params=params[field.name], expr=self.expr)
            for field in fields
        ]

    def _reordering(self) -> Reordering:
        params, fields = self.ranker_params or {}, self._open().fields
        return Reordering(self.ranker_type, params, self.topk, fields, self.search_fields)

    def _fusion(self, fields: Sequence[VectorField]) -> BaseRanker:
        names = [field.name for field in fields] + (["graph"] if self.graph is not None else [])
        return fusion_of(self.ranker_type, self.ranker_params or {}, names, reordering=REORDERING)

    def _params_by_field(self, fields: Sequence[VectorField]) -> dict[str, SearchParams | None]:
        return params_by_field(self.search_params, [field.name for field in fields])

    def _check_args(self, search_type: str) -> list[VectorField]:
        check_limits(self.topk, self.score_threshold)
        if self.rerank_input_top_n is not None and self.rerank_input_top_n < 1:
            raise SearchArgumentError(f"rerank_input_top_n={self.rerank_input_top_n} is not allowed. Give 1 or more.")
        fields = chosen_fields(self._open().fields, self.search_fields, search_type)
        self._params_by_field(fields)
        self._reordering().check()
        if self.ranker_type == MODEL:
            self._models.of(self.ranker_params or {})
        if search_type == "hybrid" or self.ranker_type not in REORDERING:
            self._fusion(fields)
        if (graph := self._graph_list()) is not None:
            graph.open()
        return fields

    def _open(self) -> OpenCollection:
        return self._searched.opened(self.vector_store)

    def _graph_list(self) -> GraphList | None:
        if isinstance(self.graph, str):
            self.graph = graph_list_of(self.vector_store, self.graph)
        return self.graph


def _unread_meter() -> CallMeter:
    return CallMeter(node="retrieve")
