"""Ends what is served under a key that is revoked meanwhile, by any process."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from starlette.types import Scope

from ....modules.settings import without_secrets
from ..keys.book import KeyBook
from ..serving.caller import Caller
from ..serving.validity import Validity

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_LAST_EVENT_S = 1.0
"""Seconds in which a stream may send its last event; then its connection is closed."""


class KeyWatch:
    """Reads the keys again while something is served under one."""

    def __init__(self, keys: KeyBook) -> None:
        self._keys = keys
        self._watched: defaultdict[str, set[Validity]] = defaultdict(set)
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def request(self, scope: Scope, key_id: str) -> Iterator[Validity]:
        """Give the caller of a request the validity of its key, and cancel the request a second after its end.

        Without a key, ``""``, nothing ends.
        """
        caller: Caller = scope["state"]["caller"]
        if not key_id:
            yield caller.validity
            return
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        timers: list[asyncio.TimerHandle] = []
        validity = Validity(lambda: timers.append(loop.call_later(_LAST_EVENT_S, task.cancel)) if task else None)
        scope["state"]["caller"] = replace(caller, validity=validity)
        try:
            with self.watched(key_id, validity):
                yield validity
        finally:
            for timer in timers:
                timer.cancel()

    @contextmanager
    def watched(self, key_id: str, validity: Validity) -> Iterator[None]:
        """End the validity if the key ends inside; ``""`` is no key."""
        if not key_id:
            yield
            return
        self._watched[key_id].add(validity)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="keys")
        try:
            yield
        finally:
            self._watched[key_id].discard(validity)
            if not self._watched[key_id]:
                del self._watched[key_id]

    async def _look(self) -> None:
        while self._watched:
            await asyncio.sleep(_LOOK_EVERY_S)
            for key_id in list(self._watched):
                try:
                    is_valid = await self._keys.is_valid(key_id)
                except Exception as error:  # noqa: BLE001 - new requests are refused; running ones go on, and are watched
                    logger.warning("It was not seen whether keys were revoked: %s", without_secrets(str(error)))
                    break
                for validity in () if is_valid else list(self._watched.get(key_id, ())):
                    validity.end()
                    self._watched[key_id].discard(validity)
