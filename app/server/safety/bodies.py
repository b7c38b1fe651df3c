"""Bodies of requests: bounded in size, and in the time they may take to arrive."""

from __future__ import annotations

import asyncio
import re

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from ..serving.errors import ApiError
from ..serving.options import ServerOptions

_UPLOADS = re.compile(r"/v1/collections/[^/]+/documents/?")
_FORM_BYTES = 100_000
"""What a form may have besides its files."""
_LENGTH_DIGITS = 15
"""More digits of a length are too large without being read; Python refuses to read thousands."""
_BYTES_PER_S = 20_000
"""Slowest upload: each such piece earns its body another second."""


class BodyLimits:
    """The limits of the bodies that a server takes."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options

    def body_of(self, scope: Scope, receive: Receive) -> LimitedBody:
        """Return the body of a request, not yet read.

        Raises:
            ApiError: HTTP 413: it says itself that it is too large.
        """
        options = self._options
        is_upload = scope["method"] == "POST" and _UPLOADS.fullmatch(scope["path"]) is not None
        most = options.max_upload_bytes + _FORM_BYTES if is_upload else options.max_body_bytes
        said = Headers(scope=scope).get("content-length", "")
        if said.isdecimal() and (len(said) > _LENGTH_DIGITS or int(said) > most):
            raise _too_large(most)
        return LimitedBody(receive, max_bytes=most, max_s=options.max_body_seconds)


class LimitedBody:
    """A body while it arrives, piece by piece as the door reads it."""

    def __init__(self, receive: Receive, *, max_bytes: int, max_s: float) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._due_at = asyncio.get_running_loop().time() + max_s
        self._is_whole = False
        self._bytes = 0
        self.refusal: ApiError | None = None
        """Why the rest is not read; None while all is well."""

    async def receive(self) -> Message:
        """Return the next piece, or what follows a whole body.

        Raises:
            ApiError: HTTP 408, 413: it is too slow, or too large.
        """
        if self._is_whole:
            return await self._receive()
        if self.refusal is not None:
            raise self.refusal
        try:
            async with asyncio.timeout_at(self._due_at + self._bytes / _BYTES_PER_S) as waiting:
                message = await self._receive()
        except TimeoutError:
            if not waiting.expired():
                raise
            self.refusal = ApiError(408, "The body of the request came too slowly.", code="slow_body")
            raise self.refusal from None
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._max_bytes:
            self.refusal = _too_large(self._max_bytes)
            raise self.refusal
        self._is_whole = not message.get("more_body", False)
        return message


def _too_large(max_bytes: int) -> ApiError:
    return ApiError(413, f"The body is larger than {max_bytes} bytes.", code="body_too_large")
