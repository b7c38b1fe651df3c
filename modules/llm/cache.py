"""A cache of model calls by request, so that a repeated run costs nothing and gives the same answers."""

from __future__ import annotations

import asyncio
import functools
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Unpack
from weakref import WeakValueDictionary

from ..calls.completion import Completion
from ..calls.growing_text import Listeners, TextListeners
from ..calls.journaled import amount_of_call
from ..calls.kept import CallResult
from ..calls.messages import PLAIN_TEXT, CallOptions, Message, call_key
from ..calls.usage import CallMeter
from ..config.models import CacheMode
from ..errors import CacheMiss
from ..storage.sqlite import transaction
from ..storage.sqlite_cache import SqliteCache
from .contract import ChatLLM, ChatWrapper

logger = logging.getLogger(__name__)


class CacheableLLM(ChatLLM, Protocol):
    """Protocol of the chat models whose calls can be cached."""

    @property
    def endpoint(self) -> str:
        """Name of its endpoint in caches, without secrets; another one gives other answers."""
        ...


_WITHOUT_READING: Mapping[CacheMode, CacheMode] = {"write": "refresh", "read": "off"}

_SCHEMA = """\
CREATE TABLE IF NOT EXISTS kept_calls (
    key BLOB PRIMARY KEY,  -- sha256 of everything that was asked, and of where
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    kept TEXT NOT NULL  -- JSON
);
CREATE TABLE IF NOT EXISTS rejected_calls (key BLOB PRIMARY KEY)"""


@dataclass(frozen=True)
class Replies:
    """The replies to one asking, as far as a cache keeps them."""

    kept: list[Callable[[], None]] = field(default_factory=list)
    """Each makes the cache serve one of them no more."""

    async def reject(self) -> None:
        """Let later runs ask for these replies anew, except replays."""
        for reject in self.kept:
            await asyncio.to_thread(reject)


_ASKING: ContextVar[Replies | None] = ContextVar("_ASKING", default=None)


@contextmanager
def track_replies() -> Iterator[Replies]:
    """Give what notes the replies inside that a cache keeps, for those who parse them."""
    token = _ASKING.set(replies := Replies())
    try:
        yield replies
    finally:
        _ASKING.reset(token)


class CompletionCache(SqliteCache):
    """A file of completions by their requests."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA, thing="model-cache")
        self._renewed: set[bytes] = set()
        self.under_way: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        """Locks by key, held while a call is answered, for all model objects; on judgetree's own loop."""

    def get(self, key: bytes) -> CallResult | None:
        """Return the call saved under a key; None if there is none, or no parser accepted its reply."""
        return self._get(key, "AND key NOT IN (SELECT key FROM rejected_calls)")

    def get_even_rejected(self, key: bytes) -> CallResult | None:
        """Return the call saved under a key, for a replay; None if there is none."""
        return self._get(key, "")

    def _get(self, key: bytes, condition: str) -> CallResult | None:
        def select(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(f"SELECT kept FROM kept_calls WHERE key = ? {condition}", (key,)).fetchone()
            return None if row is None else str(row[0])

        kept = self.attempt(select, otherwise=None)
        try:
            return None if kept is None else CallResult.from_json(kept)
        except (ValueError, KeyError, TypeError):
            logger.warning("A reply in %s is damaged, and is asked for again.", self.path)
            self._delete(key)
            return None

    def get_renewed(self, key: bytes) -> CallResult | None:
        """Return the call that this object has renewed under a key; None if it has not."""
        return self.get(key) if key in self._renewed else None

    def put(self, key: bytes, endpoint: str, model: str, kept: CallResult) -> CallResult:
        """Save a call unless its key has one that is not rejected, and return the call that is now saved under it."""
        self._insert("INSERT OR IGNORE", (key, endpoint, model, kept.to_json()))
        return self.get(key) or kept

    def renew(self, key: bytes, endpoint: str, model: str, kept: CallResult) -> None:
        """Save a call in place of the one under its key."""
        self._insert("INSERT OR REPLACE", (key, endpoint, model, kept.to_json()))
        self._renewed.add(key)

    def reject(self, key: bytes) -> None:
        """Note that no parser accepted the reply saved under a key."""

        def insert(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.execute("INSERT OR IGNORE INTO rejected_calls VALUES (?)", (key,))

        self.attempt(insert, otherwise=None, writes=True)

    def _delete(self, key: bytes) -> None:
        def delete(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.execute("DELETE FROM kept_calls WHERE key = ?", (key,))

        self.attempt(delete, otherwise=None, writes=True)

    def _insert(self, how: str, row: tuple[bytes, str, str, str]) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                if connection.execute("DELETE FROM rejected_calls WHERE key = ?", row[:1]).rowcount:
                    connection.execute("DELETE FROM kept_calls WHERE key = ?", row[:1])
                connection.execute(f"{how} INTO kept_calls VALUES (?, ?, ?, ?)", row)

        self.attempt(insert, otherwise=None, writes=True)


def without_reading(mode: CacheMode) -> CacheMode:
    """Return the mode that saves as much as ``mode`` but reads nothing saved before; ``replay`` stays."""
    return _WITHOUT_READING.get(mode, mode)


class CachedLLM(ChatWrapper):
    """A chat model whose successful calls are saved and answered from the cache.

    Simultaneous equal calls are made once. A cached call takes its place in the budget, so that a repeated run takes
    the same course; its record says ``cached``, and has the usage of the call that was made.
    """

    def __init__(
        self, inner: ChatLLM, cache: CompletionCache, *, endpoint: str, mode: CacheMode = "write", repeat: int = 0
    ) -> None:
        """Cache ``inner``; ``endpoint`` and ``repeat`` are part of the keys of its calls."""
        super().__init__(inner)
        self._cache = cache
        self._endpoint = endpoint
        self._mode = mode
        self._repeat = repeat

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        """Return the saved completion of a call, or make the call.

        Raises:
            CacheMiss: The mode is ``replay`` and the call is not saved.
        """
        call = functools.partial(self._inner.complete, messages, meter=meter, options=options, **listeners)
        if self._mode == "off":
            return await call()
        key = call_key(self._endpoint, self.model, messages, options, self._repeat)
        if self._mode in ("write", "refresh") and (asking := _ASKING.get()) is not None:
            asking.kept.append(functools.partial(self._cache.reject, key))
        if meter.holds(lambda: call_key(self._endpoint, self.model, messages, options)):
            # This question paid for the call before it was killed; another question's answer must not replace it.
            completion = await call()
            await self._keep(key, completion, meter)
            return completion
        async with self._cache.under_way.setdefault(key, asyncio.Lock()):
            kept = await asyncio.to_thread(self._getter(), key)
            if kept is None:
                return await self._pay(key, call, meter)
        reserved = await meter.reserve_amount(functools.partial(amount_of_call, messages, options, self.model))
        meter.record_cached(kept.record)
        meter.settle(reserved, kept.record)
        completion = kept.completion
        meter.transcribe(messages, options, completion)
        Listeners(**listeners).settle(text=completion.text, thinking=completion.thinking)
        return completion

    def _getter(self) -> Callable[[bytes], CallResult | None]:
        """Return how a call is looked up in this mode."""
        if self._mode == "refresh":
            return self._cache.get_renewed
        return self._cache.get_even_rejected if self._mode == "replay" else self._cache.get

    async def _pay(self, key: bytes, call: Callable[[], Awaitable[Completion]], meter: CallMeter) -> Completion:
        if self._mode == "replay":
            raise CacheMiss(
                f"A call to {self.model!r} is not in the cache {self._cache.path}, and a replay makes no calls. "
                "Repeat the run with --cache write, or check that data, prompts and settings are those of the run."
            )
        completion = await call()
        return await self._keep(key, completion, meter)

    async def _keep(self, key: bytes, completion: Completion, meter: CallMeter) -> Completion:
        """Save a completion and return the one that is now saved: another process may have been faster."""
        if self._mode not in ("write", "refresh"):
            return completion
        kept = CallResult(completion=completion, record=meter.records[-1])
        keep = self._cache.renew if self._mode == "refresh" else self._cache.put
        return (await asyncio.to_thread(keep, key, self._endpoint, self.model, kept) or kept).completion
