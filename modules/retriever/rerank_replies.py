"""Replies of rerank services, read within a size and a time: a time-out of a client begins anew with each byte."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from typing import Any

import requests
import urllib3

from ..llm.attempts import redirected

MOST_REPLY_BYTES = 10_000_000
"""Most bytes of a reply; 500 results with their texts take some 8 MB."""
_PIECE_BYTES = 1 << 16


class ReplyRefused(Exception):
    """A reply is too long, takes too long, or is packed."""


def bounded(pieces: Iterable[bytes], packing: str, timeout_s: float) -> bytes:
    """Return a reply whole.

    Args:
        pieces: Its bytes as they come.
        packing: Its header Content-Encoding, or "".
        timeout_s: Most seconds that it may take from now.

    Raises:
        ReplyRefused: It is longer than ``MOST_REPLY_BYTES``, takes longer, or is packed.
    """
    if packing.strip().lower() not in ("", "identity"):
        raise ReplyRefused(f"its reply is packed ({packing[:40]}), which was not asked for")
    whole, until_s = bytearray(), time.monotonic() + timeout_s
    for piece in pieces:
        whole += piece
        if len(whole) > MOST_REPLY_BYTES:
            raise ReplyRefused(f"its reply is longer than {MOST_REPLY_BYTES:,} bytes")
        if time.monotonic() > until_s:
            raise ReplyRefused(f"no whole reply came within {timeout_s:g} s. To allow more: timeout_s")
    return bytes(whole)


class RerankSession(requests.Session):
    """The session of DashScope's SDK, whose own follows redirects; it refuses them, and what ``bounded`` refuses."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send a request and read the reply.

        Raises:
            RedirectedError: The reply names another address; nothing is sent there.
            RequestException: The reply was refused, or did not come.
        """
        url, timeout_s = str(request.url), float(options["timeout"])
        request.headers["Accept-Encoding"] = "identity"
        response = super().send(request, **{**options, "stream": True, "allow_redirects": False})
        with response:
            if response.is_redirect:
                raise redirected(url, response.headers["location"], response.status_code)
            pieces = iter(functools.partial(response.raw.read1, _PIECE_BYTES, decode_content=False), b"")
            try:
                response._content = bounded(pieces, response.headers.get("content-encoding", ""), timeout_s)
            except (ReplyRefused, urllib3.exceptions.HTTPError) as error:
                raise requests.RequestException(str(error)) from error
        return response


@functools.cache
def rerank_session() -> RerankSession:
    """Return the session that all rerank models share."""
    return RerankSession()
