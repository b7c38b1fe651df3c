"""``/v1/trees``: a search tree whole, drawn, one chunk of it, and beside another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from ....graphs.drawing.chunk_page import draw_chunk_html
from ....graphs.drawing.html import csp_hash
from ....graphs.drawing.svg import picture_style
from ....graphs.rag.search_tree import SearchTree
from ....graphs.tree.documents import json_text
from ....graphs.tree.nodes import ChunkNode, QueryNode, walk_chunks
from ....modules.storage.texts import MAX_ID_BYTES, check_id
from ...stores.saved_trees import TreeThread
from ..serving.caller import CallerBy
from ..serving.errors import ApiError
from ..serving.served import Served, ServedBy
from .access import ThreadBy, ThreadId, find_thread
from .bodies import ChunkAnswer, DiffAnswer, TreeAnswer
from .events import router as events_router
from .forms import HTML, JSON, PAGE_POLICY, SVG, answer, etag_of, is_known, unchanged, wanted_form

router = APIRouter(prefix="/v1/trees", tags=["trees"])
router.include_router(events_router)

_MEDIA_TYPES = {"json": JSON, "svg": SVG, "html": HTML}
_TEXT = {"schema": {"type": "string"}}
_SVG_POLICY = f"default-src 'none'; style-src '{csp_hash(picture_style())}'; frame-ancestors 'self'; sandbox"

TreeForm = Annotated[
    Literal["json", "svg", "html"] | None,
    Query(alias="format", description="Form of the answer; without it the header Accept decides."),
]
PageForm = Annotated[
    Literal["json", "html"] | None,
    Query(alias="format", description="Form of the answer; without it the header Accept decides."),
]
ChunkId = Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES)]


@router.get(
    "/{thread:path}/chunks/{chunk_id:path}",
    response_model=None,
    responses={200: {"model": ChunkAnswer, "content": {HTML: _TEXT}}},
)
async def get_chunk(
    request: Request, thread: ThreadBy, chunk_id: ChunkId, served: ServedBy, form: PageForm = None
) -> Response:
    """Return one chunk with its text and verdict: as JSON, or as a page for browsers."""
    check_id("The chunk id", chunk_id)
    query, chunk = await _find_chunk(served, thread, chunk_id)
    if _form(request, form, ("json", "html")) == HTML:
        page = await asyncio.to_thread(draw_chunk_html, query, chunk)
        return answer(page, HTML, policy=PAGE_POLICY)
    return answer(json_text(ChunkAnswer.of(query, chunk).model_dump()), JSON)


@router.get(
    "/{thread:path}/diff/{other:path}",
    response_model=None,
    responses={200: {"model": DiffAnswer, "content": {HTML: _TEXT}}},
)
async def get_diff(
    request: Request, thread: ThreadBy, other: ThreadId, served: ServedBy, caller: CallerBy, form: PageForm = None
) -> Response:
    """Compare two trees: where they part, verdicts, chunks, answers, costs; as JSON, or side by side as a page."""
    first = await served.trees.read(thread)
    second = await served.trees.read(await find_thread(other, served, caller))
    compared = await asyncio.to_thread(first.diff, second)
    if _form(request, form, ("json", "html")) == HTML:
        return answer(await asyncio.to_thread(compared.to_html), HTML, policy=PAGE_POLICY)
    return answer(await asyncio.to_thread(lambda: json_text(compared.to_document())), JSON)


@router.get(
    "/{thread:path}",
    response_model=None,
    responses={200: {"model": TreeAnswer, "content": {SVG: _TEXT, HTML: _TEXT}}, 304: {"description": "Not changed."}},
)
async def get_tree(request: Request, thread: ThreadBy, served: ServedBy, form: TreeForm = None) -> Response:
    """Return the tree below a thread: as JSON, as a picture, or as a page of its own.

    The tree of a finished question has an entity tag; one that grows is not to be kept.
    """
    tree = await served.trees.read(thread)
    document = await asyncio.to_thread(tree.to_json)
    is_finished = tree.root.status == "finished"
    match _form(request, form, ("json", "svg", "html")):
        case "image/svg+xml":
            etag = etag_of(SVG, version("judgetree"), document) if is_finished else ""
            if is_finished and is_known(request, etag):
                return unchanged(etag)
            return answer(await _drawn(served, tree.to_svg), SVG, etag=etag, policy=_SVG_POLICY)
        case "text/html":
            return _kept(request, await _drawn(served, tree.to_html), HTML, keep=is_finished)
        case _:
            return _kept(request, document, JSON, keep=is_finished)


def _form(request: Request, form: str | None, offered: tuple[str, ...]) -> str:
    """Return the media type of the answer."""
    if form is not None:
        return _MEDIA_TYPES[form]
    return wanted_form(request.headers.get("Accept", "*/*"), [_MEDIA_TYPES[each] for each in offered])


def _kept(request: Request, body: str, form: str, *, keep: bool) -> Response:
    etag = etag_of(form, body) if keep else ""
    if keep and is_known(request, etag):
        return unchanged(etag)
    return answer(body, form, etag=etag, policy=PAGE_POLICY if form == HTML else "")


async def _drawn(served: Served, draw: Callable[[], str]) -> str:
    async with served.drawing:
        return await asyncio.to_thread(draw)


async def _find_chunk(served: Served, thread: TreeThread, chunk_id: str) -> tuple[QueryNode, ChunkNode]:
    """Return a chunk of the thread's own query, or else the first one of its tree."""
    query = await served.trees.read_query(thread)
    own = next((chunk for chunk in query.chunks if chunk.chunk_id == chunk_id), None)
    if own is not None:
        return query, own
    tree: SearchTree = await served.trees.read(thread)
    for parent, chunk in walk_chunks(tree.root):
        if chunk.chunk_id == chunk_id:
            return parent, chunk
    raise ApiError.not_found("chunk", chunk_id)
