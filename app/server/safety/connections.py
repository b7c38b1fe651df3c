"""The open connections of a worker: how many there may be, and which are closed to make room for others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..serving.errors import ApiError, answer_of
from ..serving.options import ServerOptions
from .answer_headers import add_headers
from .peers import TrustedProxies, host_of, peer_of

logger = logging.getLogger(__name__)

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
"""What is answered on any connection, at any rate."""
SPARE_CONNECTIONS = 32
"""Connections beyond all limits, on which the server's health is answered and all else is refused."""
_RETRY_AFTER_S = "5"


class OpenConnection(Protocol):
    """A connection that can be closed while no request is in progress on it."""

    def close_idle(self) -> bool:
        """Close it; False if something that was written has yet to be sent."""
        ...


class Connections:
    """Counts connections by the address of their peer, and closes those that have been idle the longest.

    A connection is idle while no request is in progress on it: before the head of its first one has arrived, and
    between two. One with a request in progress, a running stream included, is never closed. Connections of trusted
    proxies are not counted by address and never closed; their requests are, by the address that they forward.
    """

    def __init__(self, options: ServerOptions) -> None:
        self._most = options.max_connections
        self._most_of_peer = options.max_connections_per_address
        self._proxies = TrustedProxies(options.trusted_proxies)
        self._peers: dict[OpenConnection, str] = {}
        self._of_peer: Counter[str] = Counter()
        self._spare: dict[OpenConnection, None] = {}
        self._idle: dict[OpenConnection, None] = {}  # in the order in which they became so
        self._requests: Counter[str] = Counter()
        self.closed_idle = 0
        """Connections that were closed to make room."""
        self.refused = 0
        """Connections and requests that were refused."""

    @property
    def open(self) -> int:
        """Connections that are open now."""
        return len(self._peers) + len(self._spare)

    def opened(self, connection: OpenConnection, address: str) -> ApiError | None:
        """Take a new connection in; returns how its requests are to be refused, None within the limits."""
        peer = "" if self._proxies.trusts(address) else peer_of(address)
        refusal = self._refusal(peer)
        if refusal is None:
            self._peers[connection] = peer
            self._of_peer[peer] += 1
        else:
            self.refused += 1
            self._spare[connection] = None
        self._idle[connection] = None
        if len(self._spare) > SPARE_CONNECTIONS:  # closes the new one itself if requests are in progress on all others
            self._close_first(each for each in self._idle if each in self._spare)
        return refusal

    def closed(self, connection: OpenConnection) -> None:
        """Forget a connection."""
        self._idle.pop(connection, None)
        self._spare.pop(connection, None)
        peer = self._peers.pop(connection, None)
        if peer is not None:
            self._of_peer[peer] -= 1
            if not self._of_peer[peer]:
                del self._of_peer[peer]

    def began_request(self, connection: OpenConnection) -> None:
        """Note that a request is in progress."""
        self._idle.pop(connection, None)

    def ended_request(self, connection: OpenConnection) -> None:
        """Note that none is any more."""
        if connection in self._peers or connection in self._spare:
            self._idle[connection] = None

    @contextmanager
    def request(self, scope: Scope) -> Iterator[None]:
        """Count a request in progress, by the address of its sender, until the end of the block.

        Raises:
            ApiError: HTTP 429: as many are in progress as an address may have connections.
        """
        peer = peer_of(host_of(scope))
        if self._requests[peer] >= self._most_of_peer and scope["path"] not in HEALTH_PATHS:
            self.refused += 1
            raise _of_one_address(self._most_of_peer)
        self._requests[peer] += 1
        try:
            yield
        finally:
            self._requests[peer] -= 1
            if not self._requests[peer]:
                del self._requests[peer]

    def _refusal(self, peer: str) -> ApiError | None:
        own = (each for each in self._idle if self._peers.get(each) == peer)
        if peer and self._of_peer[peer] >= self._most_of_peer and not self._close_first(own):
            return _of_one_address(self._most_of_peer)
        others = (each for each in self._idle if self._peers.get(each))
        if len(self._peers) >= self._most and not self._close_first(others):
            return _too_many(503, f"The server has {self._most} connections, and all are in use.")
        return None

    def _close_first(self, idle: Iterator[OpenConnection]) -> bool:
        """Close the first of the connections; returns whether there was one."""
        for each in list(idle):
            if each.close_idle():
                self.closed(each)
                self.closed_idle += 1
                return True
        return False


def health_only(app: ASGIApp, refusal: ApiError) -> ASGIApp:
    """Return an application that answers for the server's health and refuses all else; it keeps no connection open."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                add_headers(message, closes=True)
            await send(message)

        to = app if scope.get("path") in HEALTH_PATHS else answer_of(refusal)
        await to(scope, receive, closing)

    return answered


def _of_one_address(most: int) -> ApiError:
    return _too_many(429, f"{most} requests of this address are in progress, and more are not taken.")


def _too_many(status: int, message: str) -> ApiError:
    return ApiError(
        status,
        f"{message} Try again soon.",
        kind="rate_limit_error",
        code="too_many_connections",
        headers={"Retry-After": _RETRY_AFTER_S},
    )
