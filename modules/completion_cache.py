"""Model calls kept by what was asked, so that a repeated run pays for nothing and says the same."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from .completion import Completion
from .errors import CacheMiss
from .growing_text import Listeners
from .llm import PLAIN_TEXT, CallOptions, ChatLLM
from .prompts import Message
from .sqlite_cache import SqliteCache, transaction
from .usage import CallMeter

CacheMode = Literal["off", "read", "write", "replay"]
"""``off`` pays for each call, ``read`` keeps nothing new, ``write`` keeps what it pays for, ``replay`` pays nothing."""

_SCHEMA = """\
CREATE TABLE IF NOT EXISTS completions (
    key BLOB PRIMARY KEY,  -- sha256 of everything that was asked
    model TEXT NOT NULL,
    kept TEXT NOT NULL  -- JSON
)"""


@dataclass(frozen=True, kw_only=True)
class KeptCall:
    """A completion and what it had cost."""

    completion: Completion
    prompt_tokens: int
    completion_tokens: int


_KEPT = TypeAdapter(KeptCall)


class CompletionCache(SqliteCache):
    """Completions by everything that was asked for them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA, thing="model-cache")

    def get(self, key: bytes) -> KeptCall | None:
        """What is kept under a key; None if nothing is."""

        def select(connection: sqlite3.Connection) -> str | None:
            row = connection.execute("SELECT kept FROM completions WHERE key = ?", (key,)).fetchone()
            return None if row is None else str(row[0])

        kept = self.attempt(select, otherwise=None)
        return None if kept is None else _KEPT.validate_json(kept)

    def put(self, key: bytes, model: str, kept: KeptCall) -> KeptCall:
        """Keep a call and give back what is now kept: another process's, if that was faster."""
        row = (key, model, _KEPT.dump_json(kept).decode())

        def insert(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.execute("INSERT OR IGNORE INTO completions VALUES (?, ?, ?)", row)

        self.attempt(insert, otherwise=None)
        return self.get(key) or kept


def call_key(model: str, messages: Sequence[Message], options: CallOptions, repeat: int) -> bytes:
    """SHA-256 over all that decides an answer: model, messages, options with their schema, and which repeat it is.

    The endpoint's address is not among them: the embedded model has a new one in every process.
    """
    asked = {"model": model, "messages": list(messages), "options": asdict(options), "repeat": repeat}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=True, default=dict).encode()).digest()


class CachedLLM:
    """A chat model whose answers are kept. Calls that fail are not, and are made again.

    The same call made twice at once is paid for once. A call that is answered from the cache takes its place in the
    budget like any other, so that a repeated run goes the same way; its record says ``cached``.
    """

    def __init__(self, inner: ChatLLM, cache: CompletionCache, *, mode: CacheMode = "write", repeat: int = 0) -> None:
        """``repeat`` tells apart repeats of one run, each of which has answers of its own."""
        self._inner = inner
        self._cache = cache
        self._mode = mode
        self._repeat = repeat
        self._under_way: dict[bytes, asyncio.Lock] = {}

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
        on_text: Callable[[str], None] | None = None,
        on_thinking: Callable[[str], None] | None = None,
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
        key = call_key(self.model, messages, options, self._repeat)
        lock = self._under_way.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                started = time.perf_counter()
                kept = await asyncio.to_thread(self._cache.get, key)
                if kept is None:
                    return await self._pay(key, call, meter)
        finally:
            self._under_way.pop(key, None)
        completion = self._from_cache(kept, started, meter)
        Listeners(on_text=on_text, on_thinking=on_thinking).tell(text=completion.text, thinking=completion.thinking)
        return completion

    async def _pay(self, key: bytes, call: Callable[[], Awaitable[Completion]], meter: CallMeter) -> Completion:
        if self._mode == "replay":
            raise CacheMiss(
                f"A call to {self.model!r} is not in the cache {self._cache.path}, and replaying pays for nothing. "
                "Repeat the run with --cache write, or check that data, prompts and settings are those of the run."
            )
        completion = await call()
        if self._mode == "write":
            paid = meter.records[-1]
            kept = KeptCall(
                completion=completion,
                prompt_tokens=paid["prompt_tokens"],
                completion_tokens=paid["completion_tokens"],
            )
            kept = await asyncio.to_thread(self._cache.put, key, self.model, kept)
            return kept.completion
        return completion

    def _from_cache(self, kept: KeptCall, started: float, meter: CallMeter) -> Completion:
        meter.reserve()
        meter.record(
            kind="chat",
            model=self.model,
            started=started,
            prompt_tokens=kept.prompt_tokens,
            completion_tokens=kept.completion_tokens,
            cached=True,
        )
        return kept.completion
