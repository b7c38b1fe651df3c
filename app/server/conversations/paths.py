"""Names of conversations in paths: any text, percent-encoded, of one segment."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Path
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from ....modules.storage.texts import MAX_ID_BYTES
from ..serving.errors import ApiError

Name = Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES, description="Name of the conversation.")]
BranchName = Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES, description="Name of the branch.")]


class SegmentRoute(APIRoute):
    """A route whose parameters are whole segments as they were sent, so that ``a%2Fb`` is a name and no two segments.

    ASGI servers decode a path before it is routed.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path as it was sent, and decode the parameters."""
        raw = scope.get("raw_path")
        if scope["type"] != "http" or not raw:
            return super().matches(scope)
        path = bytes(raw).partition(b"?")[0].decode("latin-1")
        match, child = super().matches({**scope, "path": path})
        if match != Match.NONE:
            child["path_params"] = {key: _decoded(value) for key, value in child["path_params"].items()}
        return match, child


def _decoded(segment: str) -> str:
    try:
        return unquote(segment, encoding="utf-8", errors="strict")
    except UnicodeDecodeError:
        raise ApiError(400, f"{segment!r:.200} is not the percent-encoding of a text in UTF-8.") from None
