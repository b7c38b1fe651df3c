"""``GET /v1/collections/{name}/search``: one query by three searches beside each other."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from pydantic.config import JsonDict

from ....modules.retriever.search import ALSO_IN, Hits
from ..serving.caller import CallerBy
from ..serving.errors import ApiError
from ..serving.segment_route import SegmentRoute
from ..serving.served import ServedBy
from .library import LibraryBy
from .names import CollectionName

router = APIRouter(prefix="/v1/collections", tags=["collections"], route_class=SegmentRoute)

_HIT: JsonDict = {
    "rank": 1,
    "score": 0.61,
    "chunk_id": "4b1c9e",
    "source": "vessels.md",
    "title": "Vessels",
    "text": "The wall is 12 mm thick.",
    "also_in": [],
}


class Hit(BaseModel):
    """A chunk that a search found."""

    model_config = ConfigDict(json_schema_extra={"example": _HIT})

    rank: int
    """Place in its list, from 1 on."""
    score: float
    """Higher is better; the scores of two lists cannot be compared."""
    chunk_id: str
    source: str
    title: str
    text: str
    also_in: list[str]
    """Sources of further chunks with the same text, which are left out."""


class SearchAnswer(BaseModel):
    """The chunks for a query, best first in each list."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"query": "wall", "topk": 5, "dense": [_HIT], "sparse": [_HIT], "fused": [_HIT]},
        }
    )

    query: str
    topk: int
    dense: list[Hit]
    """By embeddings: the cosine in [-1, 1], unless the index has another metric."""
    sparse: list[Hit]
    """By words: BM25, from 0 on."""
    fused: list[Hit]
    """Both, fused by reciprocal ranks, as questions are searched."""


@router.get("/{name}/search")
async def search_collection(
    name: CollectionName,
    query: Annotated[str, Query(min_length=1, max_length=20_000)],
    served: ServedBy,
    caller: CallerBy,
    library: LibraryBy,
    topk: Annotated[int, Query(ge=1, le=100, description="Most chunks of each list.")] = 10,
) -> SearchAnswer:
    """Search by embeddings, by words and by both; no model is asked, and at most two embeddings are paid."""
    limit = served.options.max_question_chars
    if not query.strip() or len(query) > limit:
        raise ApiError(422, f"Give a query of 1 to {limit} characters that are not all spaces.", param="query")
    await served.collection(caller, name)
    found = await library.search(name, query, topk=topk)
    return SearchAnswer(
        query=query, topk=topk, dense=_hits(found.dense), sparse=_hits(found.sparse), fused=_hits(found.fused)
    )


def _hits(found: Hits) -> list[Hit]:
    return [
        Hit(
            rank=rank,
            score=score,
            chunk_id=str(chunk.metadata["chunk_id"]),
            source=str(chunk.metadata.get("source", "")),
            title=str(chunk.metadata.get("title") or ""),
            text=chunk.page_content,
            also_in=[str(source) for source in chunk.metadata.get(ALSO_IN, ())],
        )
        for rank, (chunk, score) in enumerate(found, start=1)
    ]
