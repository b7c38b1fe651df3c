"""``GET /v1/runs/{run}/trees/{thread}``: a search tree of a run, as data, as a picture or as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, JsonValue

from ....evaluation.rows.trees import TreeStore
from ....graphs.drawing.html import csp_hash
from ....graphs.drawing.svg import picture_style
from ....modules.settings import Settings
from ....modules.storage.texts import MAX_ID_BYTES, check_id
from ..serving.errors import ApiError
from ..serving.segment_route import SegmentRoute
from ..trees.forms import HTML, JSON, SVG, answer, wanted_form
from .folder import FoundRun, RunName, RunsBy
from .report import policy_of

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=SegmentRoute)

TreeForm = Literal["json", "svg", "html"]
_KEPT = 8
"""Runs of which the places of their trees stay in memory."""
_MEDIA_TYPES: Mapping[TreeForm, str] = {"json": JSON, "svg": SVG, "html": HTML}
_FORMS: Mapping[str, TreeForm] = {media_type: form for form, media_type in _MEDIA_TYPES.items()}
_TEXT = {"schema": {"type": "string"}}
_SVG_POLICY = f"default-src 'none'; style-src '{csp_hash(picture_style())}'; frame-ancestors 'self'; sandbox"


class RunTree(BaseModel):
    """A search tree: its root query, with chunks, sub-queries and model calls below it."""

    model_config = ConfigDict(extra="allow")

    root: dict[str, JsonValue]


@router.get(
    "/{run}/trees/{thread:path}",
    response_model=None,
    responses={200: {"model": RunTree, "content": {SVG: _TEXT, HTML: _TEXT}}},
)
async def run_tree(
    request: Request,
    run: RunName,
    thread: Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES, description="The answer's thread_id.")],
    runs: RunsBy,
    form: Annotated[
        TreeForm | None, Query(alias="format", description="Form of the answer; without it the header Accept decides.")
    ] = None,
) -> Response:
    """Return the search tree of an answer, which the run keeps in its own directory.

    Who may see the run may see its trees: all callers but the holders of keys for certain collections.
    """
    check_id("The thread", thread)
    store = await runs.made_of(runs.find(run), _open, keep=_KEPT)
    chosen = form or _FORMS[wanted_form(request.headers.get("Accept", "*/*"), tuple(_FORMS))]
    drawn = await runs.work(_drawn, store, thread, chosen)
    if drawn is None:
        raise ApiError.not_found("tree", thread)
    policy = policy_of(drawn) if chosen == "html" else _SVG_POLICY if chosen == "svg" else ""
    return answer(drawn, _MEDIA_TYPES[chosen], policy=policy)


def _open(found: FoundRun, _settings: Settings) -> TreeStore:
    return TreeStore(found.path)


def _drawn(store: TreeStore, thread: str, form: TreeForm) -> str | None:
    tree = store.read(thread)
    if tree is None:
        return None
    match form:
        case "json":
            return tree.to_json()
        case "svg":
            return tree.to_svg()
        case "html":
            return tree.to_html()
