"""What to say of paths that clients try and that do not exist."""

from __future__ import annotations

from starlette.routing import Match
from starlette.types import Scope

API = "/v1"
_CHAT = "Use POST /v1/chat/completions, which is chat.completions.create in OpenAI's clients."
_WANTED = {
    "/responses": f"This server has no Responses API. {_CHAT}",
    "/completions": f"This server completes no bare prompts. {_CHAT}",
    "/embeddings": "This server embeds no texts for clients. GET /v1/collections/{name}/search searches by embeddings.",
    "": f"{API} is the base URL of clients. GET {API}/models lists the models.",
}
"""What clients of OpenAI's API try below the base URL, and what to use instead."""
_DESCRIBED = "GET /openapi.json describes all paths"


def hint_for(scope: Scope) -> str:
    """Return what to use in place of a path that does not exist."""
    path = scope["path"]
    beyond = path.removeprefix(API).removesuffix("/")
    for tried, instead in _WANTED.items():
        if beyond == tried or (tried and beyond.startswith(f"{tried}/")):
            return instead
    if not path.startswith(f"{API}/") and _exists(scope, f"{API}{path}"):
        return f"There is no {path:.100}, but {API}{path:.100}: end the client's base URL in {API}."
    return f"There is no {path!r:.100}. {_DESCRIBED}; a name with / in it is sent with %2F."


def words_for_method(scope: Scope, allowed: str) -> str:
    """Return which methods a path that exists takes."""
    return f"{scope['path']!r:.100} takes {allowed or 'another method'}, not {scope['method']:.20}. {_DESCRIBED}."


def _exists(scope: Scope, path: str) -> bool:
    routes = getattr(scope.get("router"), "routes", ())
    wanted = {**scope, "path": path, "raw_path": path.encode("utf-8", "surrogateescape")}
    return any(route.matches(wanted)[0] != Match.NONE for route in routes)
