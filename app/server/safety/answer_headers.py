"""Headers of every answer that keep browsers from guessing, embedding, keeping and leaking."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import Message

_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OTHER = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""For pictures and data that are opened as pages: no script, and the styles of an SVG."""
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def add_headers(start: Message, *, closes: bool = False) -> None:
    """Add the headers to the start of an answer.

    A door that needs another ``Content-Security-Policy`` (a drawing with its own script) or ``Cache-Control`` sets
    it itself. ``closes`` ends the connection after the answer, which leaves the rest of a body unread.
    """
    headers = MutableHeaders(scope=start)
    is_page = headers.get("content-type", "").startswith("text/html")
    headers.setdefault("Content-Security-Policy", _PAGE if is_page else _OTHER)
    headers.setdefault("Cache-Control", "no-store")
    for name, value in _ALWAYS.items():
        headers[name] = value
    if closes:
        headers["Connection"] = "close"
