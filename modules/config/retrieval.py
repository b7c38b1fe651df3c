"""Keys of the search for chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from ..addresses import Address, with_addresses
from .config import Config, Key, after

SearchType = Literal["hybrid", "dense", "sparse"]
RankerType = Literal["rrf", "weighted", "model", "mmr", "facility_location", "log_det"]
OF_BUILT_IN_SEARCH = (
    "search_type",
    "ranker_type",
    "ranker_params",
    "rerank",
    "rerank_input_top_n",
    "score_threshold",
    "search_graph",
)
"""Keys that a retriever of one's own does not take."""


class Retrieval(Config):
    """Retrieval"""

    retriever: Annotated[
        str | None, Key(needs=("retriever",), is_part=True, path_in=after("prebuilt:"), metavar="SPEC")
    ] = None
    """What is searched in place of a collection: prebuilt:PATH, an index that others have built; or a retriever of
    your own, as module:name, in place of search_type and ranker_type too."""
    topk: Annotated[
        int,
        Field(strict=True, ge=1),
        Key(needs=("retriever",), common=True, per_question=True, in_requests=True, metavar="N"),
    ] = 3
    """Chunks that each query retrieves."""
    search_type: Annotated[SearchType, Key(needs=("retriever",), per_question=True, in_requests=True)] = "hybrid"
    """How chunks are found: by words and embeddings, embeddings, or words (hybrid, dense, sparse)."""
    ranker_type: Annotated[RankerType, Key(needs=("retriever",))] = "rrf"
    """What orders or chooses hits: rrf, weighted, model, mmr, facility_location or log_det."""
    ranker_params: Annotated[Mapping[str, JsonValue] | None, Key(needs=("retriever",), metavar="MAPPING")] = None
    """Parameters of the ranker, as a Retriever takes them, such as {weights: [0.3, 0.7]}."""
    rerank: Annotated[Address | None, Key(needs=("retriever",), per_question=True, is_part=True, metavar="MODEL")] = (
        None
    )
    """Model that reorders the hits, in place of ranker_type: dashscope:MODEL or URL#MODEL."""
    rerank_input_top_n: Annotated[
        int | None,
        Field(strict=True, ge=1),
        Key(needs=("rerank", "ranker_type=model|mmr|facility_location|log_det"), per_question=True, metavar="N"),
    ] = None
    """Most hits that the rerank model, or a ranker_type that chooses, sees; else all."""
    score_threshold: Annotated[
        float | None, Field(allow_inf_nan=False), Key(needs=("retriever",), per_question=True, metavar="X")
    ] = None
    """Least score of a retrieved chunk."""
    search_graph: Annotated[str | None, Key(needs=("retriever",), metavar="KIND")] = None
    """Graph whose ranking is one more list of the search: entities, triples or links, made by judgetree index
    --graph."""

    @model_validator(mode="after")
    def _check_one_ranker(self) -> Self:
        if self.rerank is not None and "ranker_type" in self.model_fields_set and self.ranker_type != "model":
            raise ValueError(
                f"leave out either rerank or ranker_type={self.ranker_type!r}: each of them orders the hits"
            )
        return self

    @field_validator("ranker_params")
    @classmethod
    def _part_from_secrets(cls, params: Mapping[str, JsonValue] | None) -> Mapping[str, JsonValue] | None:
        return None if params is None else with_addresses(params)
