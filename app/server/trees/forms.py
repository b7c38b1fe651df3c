"""The forms of an answer: which one a client wants, and which a cache may keep."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from fastapi import Request
from fastapi.responses import Response

JSON = "application/json"
HTML = "text/html"
SVG = "image/svg+xml"

_MOST_WISHES = 64
_HEADERS = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
    "X-Content-Type-Options": "nosniff",
}
PAGE_POLICY = "frame-ancestors 'self'"
"""Policy of a page, beside that in the page itself, which allows its own script and style by hash."""


def wanted_form(accept: str, offered: Sequence[str]) -> str:
    """Return the offered media type that an ``Accept`` header likes best, the first one among equals.

    >>> wanted_form("text/html,application/xhtml+xml,*/*;q=0.8", (JSON, SVG, HTML))
    'text/html'
    >>> wanted_form("*/*", (JSON, HTML)), wanted_form("image/png", (JSON, HTML))
    ('application/json', 'application/json')
    """
    wishes = [_wish(part) for part in accept.split(",")[:_MOST_WISHES]]
    return max(offered, key=lambda form: _liking(form, wishes))  # max returns the first of equals


def _wish(part: str) -> tuple[str, float]:
    """Return the media type and the weight of one part of the header; a weight that is none counts as 0."""
    kind, *parameters = (piece.strip() for piece in part.lower().split(";"))
    weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return kind, min(max(float(weight), 0.0), 1.0)
    except ValueError:
        return kind, 0.0


def _liking(form: str, wishes: Sequence[tuple[str, float]]) -> float:
    """Return the weight of the most specific wish for a form; 0 without one."""
    for kind in (form, f"{form.partition('/')[0]}/*", "*/*"):
        for wished, weight in wishes:
            if wished == kind:
                return weight
    return 0.0


def etag_of(*parts: str | bytes) -> str:
    """Return an entity tag for what these parts determine."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return f'"{digest.hexdigest()[:32]}"'


def is_known(request: Request, etag: str) -> bool:
    """Return whether the client has this version already."""
    known = [each.strip().removeprefix("W/") for each in request.headers.get("If-None-Match", "").split(",")]
    return etag in known or "*" in known


def answer(body: str, form: str, *, etag: str = "", policy: str = "") -> Response:
    """Return an answer; one with an entity tag may be kept by the client, who asks each time whether it still holds."""
    headers = _HEADERS | _caching(etag) | ({"Content-Security-Policy": policy} if policy else {})
    return Response(body.encode(), media_type=form if form == JSON else f"{form}; charset=utf-8", headers=headers)


def unchanged(etag: str) -> Response:
    """Return the answer to a client that has the newest version."""
    return Response(status_code=304, headers=_HEADERS | _caching(etag))


def _caching(etag: str) -> dict[str, str]:
    return {"Cache-Control": "private, no-cache", "ETag": etag} if etag else {"Cache-Control": "no-store"}
