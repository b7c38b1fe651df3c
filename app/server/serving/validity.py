"""Whether the key of a request is still valid while the request is served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TypeVar

from .errors import ApiError

T = TypeVar("T")


class Validity:
    """The validity of a key, which ends at most once; without a key it never does."""

    def __init__(self, on_end: Callable[[], None] = lambda: None) -> None:
        """``on_end`` is called once the key has ended, on the server's loop."""
        self._on_end = on_end
        self._waiting: set[asyncio.Timeout] = set()
        self.has_ended = False

    def end(self) -> None:
        """End it, and everything that is awaited under ``required``."""
        self.has_ended = True
        for scope in self._waiting:
            scope.reschedule(asyncio.get_running_loop().time())
        self._waiting.clear()
        self._on_end()

    @asynccontextmanager
    async def required(self) -> AsyncIterator[None]:
        """Cancel what is awaited inside once the key ends.

        Raises:
            ApiError: HTTP 401: it has ended.
        """
        if self.has_ended:
            raise key_ended()
        try:
            async with asyncio.timeout(None) as scope:
                self._waiting.add(scope)
                try:
                    yield
                finally:
                    self._waiting.discard(scope)
        except TimeoutError:
            if not scope.expired():
                raise
            raise key_ended() from None

    async def limited(self, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """Yield the items for as long as the key is valid.

        Raises:
            ApiError: HTTP 401: it has ended; the items are closed.
        """
        async with aclosing(items):
            while True:
                try:
                    async with self.required():
                        item = await anext(items)
                except StopAsyncIteration:
                    return
                yield item


def key_ended() -> ApiError:
    """Return the error of a request whose key was revoked while it was served."""
    return ApiError(
        401,
        "This key is not valid any more: it was revoked while the request was served.",
        kind="authentication_error",
        code="invalid_api_key",
    )
