"""Limits the requests a minute of each key, and of each address without a key."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Scope

from ..serving.errors import ApiError
from .connections import HEALTH_PATHS
from .peers import host_of, peer_of

_MOST_SENDERS = 10_000


class RequestRate:
    """Gives each sender a bucket of requests, which fills up again within a minute; each worker has its own.

    The buckets of the 10,000 latest senders are kept, so that memory is bounded.
    """

    def __init__(self, requests_per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = float(requests_per_minute)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, scope: Scope, key_id: str) -> None:
        """Count a request of a key's holder, or of its address without a key.

        Raises:
            ApiError: HTTP 429: the sender's requests of this minute are used up.
        """
        if scope["path"] in HEALTH_PATHS:
            return
        wait_s = self.take(f"key {key_id}" if key_id else peer_of(host_of(scope)))
        if wait_s > 0:
            raise ApiError(
                429,
                f"More than {self._most:g} requests a minute. Try again in {math.ceil(wait_s)} s.",
                kind="rate_limit_error",
                code="rate_limit_exceeded",
                headers={"Retry-After": str(math.ceil(wait_s))},
            )

    def take(self, sender: str) -> float:
        """Take a request out of a sender's bucket; return the seconds until there is one if it is empty, else 0."""
        now, per_s = self._clock(), self._most / 60
        left, at = self._buckets.pop(sender, (self._most, now))
        left = min(self._most, left + (now - at) * per_s)
        self._buckets[sender] = (max(left - 1, 0.0) if left >= 1 else left, now)
        while len(self._buckets) > _MOST_SENDERS:
            self._buckets.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / per_s
