"""``GET /v1/runs/{run}/trees/{thread}``: a search tree of a run, as data, as a picture or as a page."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, JsonValue

from ....evaluation.rows.trees import TreeStore
from ....graphs.drawing.html import csp_hash
from ....graphs.drawing.svg import picture_style
from ....modules.formats import MAX_ID_BYTES, check_id
from ....modules.settings import Settings
from ..serving.errors import ApiError
from .folder import FoundRun, RunName, RunsBy
from .report import policy_of

router = APIRouter(prefix="/v1/runs", tags=["runs"])

TreeForm = Literal["json", "svg", "html"]
_KEPT = 8
"""Runs of which the places of their trees stay in memory."""
_MEDIA_TYPES = {"json": "application/json", "svg": "image/svg+xml; charset=utf-8", "html": "text/html; charset=utf-8"}
_TEXT = {"schema": {"type": "string"}}
_SVG_POLICY = f"default-src 'none'; style-src '{csp_hash(picture_style())}'; frame-ancestors 'self'; sandbox"


class RunTree(BaseModel):
    """A search tree: its root query, with chunks, sub-queries and model calls below it."""

    model_config = ConfigDict(extra="allow")

    root: dict[str, JsonValue]


@router.get(
    "/{run}/trees/{thread:path}",
    response_model=None,
    responses={200: {"model": RunTree, "content": {"image/svg+xml": _TEXT, "text/html": _TEXT}}},
)
async def run_tree(
    run: RunName,
    thread: Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES, description="The answer's thread_id.")],
    runs: RunsBy,
    form: Annotated[TreeForm, Query(alias="format")] = "json",
) -> Response:
    """Return the search tree of an answer, which the run keeps in its own directory.

    Who may see the run may see its trees: all callers but the holders of keys for certain collections.
    """
    check_id("The thread", thread)
    store = await runs.made_of(runs.find(run), _open, keep=_KEPT)
    drawn = await runs.work(_drawn, store, thread, form)
    if drawn is None:
        raise ApiError.not_found("tree", thread)
    policy = {"html": policy_of, "svg": lambda _: _SVG_POLICY}.get(form)
    headers = {"Content-Security-Policy": policy(drawn)} if policy else {}
    return Response(drawn.encode("utf-8", "replace"), media_type=_MEDIA_TYPES[form], headers=headers)


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
