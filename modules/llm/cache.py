"""Model calls kept by what was asked, so that a repeated run pays for nothing and says the same."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal
from weakref import WeakValueDictionary

from ..calls.completion import Completion
from ..calls.growing_text import Listeners, TextListener
from ..calls.kept import KeptCall
from ..calls.messages import PLAIN_TEXT, CallOptions, Message, call_key
from ..calls.usage import CallMeter
from ..errors import CacheMiss
from ..sqlite_cache import SqliteCache, transaction
from .endpoint import ChatLLM

CacheMode = Literal["off", "read", "write", "refresh", "replay"]
"""``off`` pays for each call, ``read`` keeps nothing new, ``write`` keeps what it pays for, ``refresh`` does so in
place of what was kept before the run, ``replay`` pays nothing."""

_WITHOUT_READING: Mapping[CacheMode, CacheMode] = {"write": "refresh", "read": "off"}

_SCHEMA = """\
CREATE TABLE IF NOT EXISTS kept_calls (
    key BLOB PRIMARY KEY,  -- sha256 of everything that was asked, and of where
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    kept TEXT NOT NULL  -- JSON
)"""


class CompletionCache(SqliteCache):
    """Completions by everything that was asked for them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA, thing="model-cache")
        self._renewed: set[bytes] = set()
        self.under_way: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        """Held by who asks for a call, by its key, whichever model object asks; of judgetree's own loop."""

    def get(self, key: bytes) -> KeptCall | None:
        """What is kept under a key; None if nothing is."""

        def select(connection: sqlite3.Connection) -> str | None:
            row = connection.execute("SELECT kept FROM kept_calls WHERE key = ?", (key,)).fetchone()
            return None if row is None else str(row[0])

        kept = self.attempt(select, otherwise=None)
        return None if kept is None else KeptCall.from_json(kept)

    def get_renewed(self, key: bytes) -> KeptCall | None:
        """What this object has renewed under a key; None if it has not."""
        return self.get(key) if key in self._renewed else None

    def put(self, key: bytes, endpoint: str, model: str, kept: KeptCall) -> KeptCall:
        """Keep a call and give back what is now kept: another process's, if that was faster."""
        self._insert("INSERT OR IGNORE", (key, endpoint, model, kept.to_json()))
        return self.get(key) or kept

    def renew(self, key: bytes, endpoint: str, model: str, kept: KeptCall) -> None:
        """Keep a call in place of what is kept under its key."""
        self._insert("INSERT OR REPLACE", (key, endpoint, model, kept.to_json()))
        self._renewed.add(key)

    def _insert(self, how: str, row: tuple[bytes, str, str, str]) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.execute(f"{how} INTO kept_calls VALUES (?, ?, ?, ?)", row)

        self.attempt(insert, otherwise=None)


def without_reading(mode: CacheMode) -> CacheMode:
    """The mode that keeps as much as ``mode`` and answers with nothing that was kept before; a replay stays one."""
    return _WITHOUT_READING.get(mode, mode)


class CachedLLM:
    """A chat model whose answers are kept. Calls that fail are not, and are made again.

    The same call made twice at once is paid for once. A call that is answered from the cache takes its place in the
    budget like any other, so that a repeated run goes the same way; its record says ``cached``, and what it once took.
    """

    def __init__(
        self, inner: ChatLLM, cache: CompletionCache, *, endpoint: str, mode: CacheMode = "write", repeat: int = 0
    ) -> None:
        """``endpoint`` and ``repeat`` tell apart models of one name, and repeats of a run with answers of their own."""
        self._inner = inner
        self._cache = cache
        self._endpoint = endpoint
        self._mode = mode
        self._repeat = repeat

    @property
    def model(self) -> str:
        """The inner model's name."""
        return self._inner.model

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        on_text: TextListener | None = None,
        on_thinking: TextListener | None = None,
    ) -> Completion:
        """See ``ChatLLM.complete``.

        Raises:
            CacheMiss: The mode is ``replay`` and the call is not kept.
        """
        call = functools.partial(
            self._inner.complete, messages, meter=meter, options=options, on_text=on_text, on_thinking=on_thinking
        )
        if self._mode == "off":
            return await call()
        key = call_key(self._endpoint, self.model, messages, options, self._repeat)
        if meter.holds(lambda: call_key(self._endpoint, self.model, messages, options)):
            # Paid for by this very question before it was killed: no answer of another question may take its place.
            completion = await call()
            await self._keep(key, completion, meter)
            return completion
        get = self._cache.get_renewed if self._mode == "refresh" else self._cache.get
        async with self._cache.under_way.setdefault(key, asyncio.Lock()):
            kept = await asyncio.to_thread(get, key)
            if kept is None:
                return await self._pay(key, call, meter)
        meter.reserve()
        meter.record_cached(kept.record)
        completion = kept.completion
        listeners = Listeners(on_text=on_text, on_thinking=on_thinking)
        listeners.settle(text=completion.text, thinking=completion.thinking)
        return completion

    async def _pay(self, key: bytes, call: Callable[[], Awaitable[Completion]], meter: CallMeter) -> Completion:
        if self._mode == "replay":
            raise CacheMiss(
                f"A call to {self.model!r} is not in the cache {self._cache.path}, and replaying pays for nothing. "
                "Repeat the run with --cache write, or check that data, prompts and settings are those of the run."
            )
        completion = await call()
        return await self._keep(key, completion, meter)

    async def _keep(self, key: bytes, completion: Completion, meter: CallMeter) -> Completion:
        """What is kept from now on: the completion, or another process's if that was faster."""
        if self._mode not in ("write", "refresh"):
            return completion
        kept = KeptCall(completion=completion, record=meter.records[-1])
        keep = self._cache.renew if self._mode == "refresh" else self._cache.put
        return (await asyncio.to_thread(keep, key, self._endpoint, self.model, kept) or kept).completion
