"""How much of a reply is read: a model's text, and the bytes that carry it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

BYTES_A_BYTE_WHOLE = 10
"""Bytes on the wire for a byte of text in a reply that is sent at once: escapes and log probabilities."""
BYTES_A_BYTE_STREAMED = 100
"""The same in a stream, where 300 bytes carry one token."""
LONGEST_ERROR = 64_000
"""Bytes of an error's body that are read."""


class ReplyTooLong(ValueError):
    """A reply is longer than the setting allows. The same call would end the same way."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"its reply is longer than {max_bytes:,} bytes. To allow more: JUDGETREE_MAX_REPLY_BYTES")


class CappedStream(httpx2.AsyncByteStream):
    """The bytes of a response, up to a number of them."""

    def __init__(self, inner: AsyncIterator[bytes] | httpx2.AsyncByteStream, *, limit: int, max_bytes: int) -> None:
        """Past ``limit`` bytes it ends; if ``max_bytes`` is not 0, with ``ReplyTooLong``, which names that setting."""
        self._inner = inner
        self._limit = limit
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._inner:
            yield chunk[:left]
            left -= len(chunk)
            if left < 0:
                if self._max_bytes:
                    raise ReplyTooLong(self._max_bytes)
                return

    async def aclose(self) -> None:
        """Close the response."""
        if isinstance(self._inner, httpx2.AsyncByteStream):
            await self._inner.aclose()


def cap_reply(response: httpx2.Response, *, limit: int, max_bytes: int) -> None:
    """Let no more than ``limit`` bytes of a response be read; one more is a ``ReplyTooLong``."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = CappedStream(response.stream, limit=limit, max_bytes=max_bytes)


async def cut_error_short(response: httpx2.Response) -> None:
    """A hook of an HTTP client: the body of an error ends after ``LONGEST_ERROR`` bytes."""
    if response.is_error and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = CappedStream(response.stream, limit=LONGEST_ERROR, max_bytes=0)
