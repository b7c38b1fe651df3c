"""``GET /v1/collections``: the collections, and the files of one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from pydantic.config import JsonDict

from ..serving.caller import CallerBy
from ..serving.segment_route import SegmentRoute
from ..serving.served import ServedBy
from .names import CollectionName

router = APIRouter(prefix="/v1/collections", tags=["collections"], route_class=SegmentRoute)

_EXAMPLE: JsonDict = {
    "name": "standards",
    "files": 25,
    "chunks": 310,
    "embedders": ["local:minilm"],
    "analyzer": "standard",
    "chunk_size": 700,
    "example_title": "KV-133 Flanges",
    "problem": "",
}


class CollectionAnswer(BaseModel):
    """A collection of documents."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    name: str
    files: int
    chunks: int
    embedders: list[str]
    """Names of the embedders, one for each dense field."""
    analyzer: str
    """How BM25 finds words: ``standard``, or ``jieba`` for Chinese."""
    chunk_size: int
    """Most characters of a chunk."""
    example_title: str
    """Title of one of its documents, such as for an example question; empty if they have none."""
    problem: str
    """Why the collection cannot be asked; empty if it can."""


class CollectionFile(BaseModel):
    """A file of a collection."""

    source: str
    """Name of the file in the collection, as in the sources of answers."""
    chunks: int


class CollectionList(BaseModel):
    """The collections that the caller may use, sorted by name."""

    data: list[CollectionAnswer]
    may_fill: list[str] | None
    """Names of the collections, existing or not, that the caller may fill; null for any."""


class CollectionWithFiles(CollectionAnswer):
    """A collection with a page of its files."""

    model_config = ConfigDict(
        json_schema_extra={"example": _EXAMPLE | {"sources": [{"source": "vessels.md", "chunks": 12}]}}
    )

    sources: list[CollectionFile]
    """Files sorted by source, from ``offset`` on."""


@router.get("")
async def list_collections(served: ServedBy, caller: CallerBy) -> CollectionList:
    """List the collections with their sizes."""
    return CollectionList(
        data=[CollectionAnswer.model_validate(asdict(each)) for each in await served.collections(caller)],
        may_fill=served.usable_names(caller),
    )


@router.get("/{name}")
async def one_collection(
    name: CollectionName,
    served: ServedBy,
    caller: CallerBy,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Most files.")] = 1_000,
    offset: Annotated[int, Query(ge=0, le=10_000_000, description="Files to leave out first.")] = 0,
) -> CollectionWithFiles:
    """Return a collection with its files and their numbers of chunks."""
    found = await served.collection(caller, name)
    page = list(found.files.items())[offset : offset + limit]
    sources = [CollectionFile(source=source, chunks=chunks) for source, chunks in page]
    return CollectionWithFiles.model_validate(asdict(found.summary) | {"sources": sources})
