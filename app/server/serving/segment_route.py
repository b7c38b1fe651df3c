"""Names in paths: any text, percent-encoded, of one segment."""

from __future__ import annotations

from urllib.parse import unquote

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from .errors import ApiError


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
