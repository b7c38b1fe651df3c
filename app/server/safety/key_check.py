"""Checks the key of a request, and puts its holder into the request's state."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import Scope

from ..keys.book import KeyBook
from ..keys.key import StoredKey
from ..keys.links import LinkSigner, SignedLink
from ..serving.caller import LOCAL, Caller
from ..serving.errors import ApiError

_OPEN_PATHS = frozenset({"/", "/healthz", "/readyz", "/favicon.ico"})
_OPEN_FOLDER = "/assets/"
_REALM = {"WWW-Authenticate": 'Bearer realm="judgetree"'}
_NOBODY = Caller(key_id="nobody", name="nobody", collections=frozenset())
"""The caller of what needs no key."""


class KeyCheck:
    """Demands a key of every request but those for the web page's own files and for the server's health."""

    def __init__(self, keys: KeyBook, *, demands_keys: bool) -> None:
        self._keys = keys
        self._demands_keys = demands_keys

    async def check(self, scope: Scope) -> str:
        """Set ``request.state.caller``, and return the id of the key; ``""`` without one.

        The caller is the holder of the key, or the user of this machine where none is demanded.

        Raises:
            ApiError: HTTP 401: no key, a wrong or a revoked one.
            SettingsError: The keys cannot be read.
        """
        state = scope.setdefault("state", {})
        if not self._demands_keys:
            state["caller"] = LOCAL
            return ""
        if is_open(scope):
            state["caller"] = _NOBODY
            return ""
        key = await self._key_of(scope)
        state["caller"] = Caller(
            key_id=key.id,
            name=key.name,
            collections=key.collections,
            per_day=key.per_day,
            per_question=key.per_question,
            links=LinkSigner.of(key),
        )
        return key.id

    async def _key_of(self, scope: Scope) -> StoredKey:
        """Return the key that a request brings, or whose holder's link it follows."""
        text, link = _bearer_text(scope), _link_of(scope)
        if link is not None and not text:
            key = await self._keys.holder(link.key_id)
            if key is not None and LinkSigner.of(key).has_signed(scope["path"], link):
                return key
            raise _refused("This link is not valid any more. Ask the question again for a new one, or send a key.")
        key = await self._keys.find(text) if text else None
        if key is None:
            words = "This key is not valid here." if text else "A key is needed: Authorization: Bearer KEY."
            raise _refused(f"{words} Whoever runs the server makes keys: judgetree keys add NAME")
        return key


def _refused(words: str) -> ApiError:
    return ApiError(401, words, kind="authentication_error", code="invalid_api_key", headers=_REALM)


def _link_of(scope: Scope) -> SignedLink | None:
    """Return the signature of a link to something that is only read; None without one."""
    return SignedLink.in_query(scope["query_string"].decode("latin-1")) if scope["method"] in ("GET", "HEAD") else None


def is_open(scope: Scope) -> bool:
    """Return whether a request needs no key: the page's files and the server's health, to be read only.

    >>> is_open({"method": "GET", "path": "/assets/../v1/models"})
    False
    """
    path = scope["path"]
    if scope["method"] not in ("GET", "HEAD"):
        return False
    if path in _OPEN_PATHS:
        return True
    parts = path.split("/")[2:]
    return path.startswith(_OPEN_FOLDER) and not any(part in ("", ".", "..") or "\\" in part for part in parts)


def _bearer_text(scope: Scope) -> str:
    """Return the text of the key that a request brings; ``""`` without one, or with several."""
    given = Headers(scope=scope).getlist("authorization")
    scheme, _, text = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return text.strip() if scheme.lower() == "bearer" else ""
