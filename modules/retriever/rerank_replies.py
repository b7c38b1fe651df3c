"""Requests to rerank services, whose replies are read within a size and a time: the time-outs of their clients begin
anew with each byte."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Iterable, Mapping
from typing import Any

import httpx
import requests
import urllib3

from ..addresses import Address
from ..background.closing import closing
from ..background_loop import background_loop
from ..llm.attempts import redirected
from ..network.certificates import trusted_certificates
from ..network.clients import async_client
from ..network.sessions import RoutedSession

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
    _check_packing(packing)
    whole, until_s = bytearray(), time.monotonic() + timeout_s
    for piece in pieces:
        whole += piece
        _check_length(whole)
        if time.monotonic() > until_s:
            raise _late(timeout_s)
    return bytes(whole)


def _check_packing(packing: str) -> None:
    if packing.strip().lower() not in ("", "identity"):
        raise ReplyRefused(f"its reply is packed ({packing[:40]}), which was not asked for")


def _check_length(whole: bytearray) -> None:
    if len(whole) > MOST_REPLY_BYTES:
        raise ReplyRefused(f"its reply is longer than {MOST_REPLY_BYTES:,} bytes")


def _late(timeout_s: float) -> ReplyRefused:
    return ReplyRefused(f"no whole reply came within {timeout_s:g} s. To allow more: timeout_s")


def posted(
    url: Address, body: Mapping[str, object], headers: Mapping[str, str], timeout_s: float
) -> tuple[httpx.Response, bytes]:
    """Send a JSON body and return the response with its content.

    It runs on judgetree's loop, where the time limit ends everything: of a blocking socket, OpenSSL alone reads the
    handshake, which a server can lengthen without end.

    Args:
        url: The endpoint.
        body: The JSON body.
        headers: Further headers.
        timeout_s: Most seconds from the connection to the end of the reply.

    Raises:
        ReplyRefused: The reply is longer than ``MOST_REPLY_BYTES``, takes longer than ``timeout_s``, or is packed.
        RedirectedError: It names another address; nothing is sent there.
        HTTPError, InvalidURL: No reply came.
    """
    certificates = trusted_certificates()

    async def post() -> tuple[httpx.Response, bytes]:
        params, sent, whole = url.query_params(), {**headers, "Accept-Encoding": "identity"}, bytearray()
        async with (
            asyncio.timeout(timeout_s),
            async_client(timeout_s=timeout_s, verify=certificates) as client,
            client.stream("POST", url, params=params, json=body, headers=sent) as got,
        ):
            if got.has_redirect_location:
                raise redirected(url, got.headers["location"], got.status_code)
            _check_packing(got.headers.get("content-encoding", ""))
            async with closing(got.aiter_raw()) as pieces:
                async for piece in pieces:
                    whole += piece
                    _check_length(whole)
        return got, bytes(whole)

    try:
        return background_loop().run(post())
    except (TimeoutError, httpx.TimeoutException) as error:
        raise _late(timeout_s) from error


class RerankSession(RoutedSession):
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
