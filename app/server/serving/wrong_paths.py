"""What to say of paths that clients try and that do not exist."""

from __future__ import annotations

from starlette.routing import Match
from starlette.types import Scope

API = "/v1"
_RESPONSES = "/responses"


def hint_for(scope: Scope) -> str:
    """Return what to use in place of a path that does not exist; ``""`` where that is not known."""
    path = scope["path"]
    beyond = path.removeprefix(API)
    if beyond == _RESPONSES or beyond.startswith(f"{_RESPONSES}/"):
        return (
            "This server has no Responses API. Use POST /v1/chat/completions, which is chat.completions.create in "
            "OpenAI's clients."
        )
    if not path.startswith(f"{API}/") and _exists(scope, f"{API}{path}"):
        return f"There is no {path:.100}, but {API}{path:.100}: end the client's base URL in {API}."
    return ""


def _exists(scope: Scope, path: str) -> bool:
    routes = getattr(scope.get("router"), "routes", ())
    wanted = {**scope, "path": path, "raw_path": path.encode("utf-8", "surrogateescape")}
    return any(route.matches(wanted)[0] != Match.NONE for route in routes)
