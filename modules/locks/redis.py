"""Locks between the processes that share a Redis: keys that expire unless their holder renews them."""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass

from ..addresses import Address
from ..digests import text_digest
from ..errors import SettingsError, StoreFailure
from ..storage.redis import RedisAtFirstUse, key, redis_errors
from .locks import CHECK_EVERY_S, Holder, Locks, uncancelled

EXPIRE_S = 10.0
"""Seconds after which a lock that is not renewed is free: those of a killed process are."""
_EXPIRED = "it had expired (was this machine too busy to renew it?), or Redis was restarted without its last second"
_MARGIN_S = 1.0
"""Seconds before a lock expires in which its holder's work is ended."""

# A command whose answer was lost is sent again: a lock with the own token is one's own already. A lock is small, and
# without one nothing could be deleted from a full memory.
_TAKE = """#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_RENEW = """
local held = {}
for i, name in ipairs(KEYS) do
  held[i] = 0
  if redis.call('GET', name) == ARGV[i] then held[i] = redis.call('PEXPIRE', name, ARGV[#ARGV]) end
end
return held
"""
_FREE = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"


@dataclass(kw_only=True)
class _Held:
    """A lock of this process."""

    holder: Holder
    key: bytes
    token: str
    renewed_at_s: float
    """Monotonic time at which the newest request that Redis granted was sent."""


class RedisLocks(Locks):
    """Keys with a random token, which their holder renews every ``check_every_s`` seconds.

    A holder that cannot renew its lock has its work cancelled before the lock expires. A holder that could not notice,
    such as a process that was stopped, fails when it saves: a save must follow the newest checkpoint.
    """

    def __init__(self, url: str, *, check_every_s: float = CHECK_EVERY_S) -> None:
        """Use the Redis at ``url``; nothing is connected before the first lock."""
        super().__init__()
        self._redis = RedisAtFirstUse(url)
        self._check_every_s = check_every_s
        self._held: dict[str, _Held] = {}
        self._watch: asyncio.Task[None] | None = None

    async def take(self, name: str, holder: Holder) -> bool:
        """Take a lock in one round trip, as ``Locks.take`` says."""
        held = _Held(
            holder=holder,
            key=key("lock", text_digest(name).hex()[:32]),
            token=uuid.uuid4().hex,
            renewed_at_s=time.monotonic(),
        )
        asked = asyncio.ensure_future(self._ask(_TAKE, held, int(EXPIRE_S * 1000)))
        try:
            taken = await uncancelled(asked)
        except asyncio.CancelledError:
            with suppress(SettingsError):
                if await asked:
                    await uncancelled(self._ask(_FREE, held))
            raise
        if taken:
            self._held[name] = held
            if self._watch is None:
                self._watch = asyncio.create_task(self._renew_all(), name="locks")
        return taken

    async def free(self, name: str, holder: Holder) -> None:
        """Free a lock in one round trip, as ``Locks.free`` says."""
        held = self._held.get(name)
        if held is None or held.holder is not holder:
            return
        del self._held[name]
        if not await uncancelled(self._ask(_FREE, held)):
            error = self._lost(_EXPIRED)
            holder.lose(error)
            raise error

    async def aclose(self) -> None:
        """Close the connections, as ``Locks.aclose`` says."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
            self._watch = None
        held, self._held = list(self._held.values()), {}
        for each in held:
            each.holder.lose(SettingsError("The locks in Redis were closed while one was held."))
            with suppress(SettingsError):
                await self._ask(_FREE, each)
        await self._redis.aclose()

    async def _ask(self, script: str, held: _Held, *arguments: int) -> bool:
        with redis_errors(self._redis.url):
            client = await self._redis.open()
            return bool(await client.register_script(script)(keys=[held.key], args=[held.token, *arguments]))

    async def _renew_all(self) -> None:
        while self._held:
            await asyncio.sleep(self._check_every_s)
            before = dict(self._held)
            if not before:
                break
            due_s = min(each.renewed_at_s for each in before.values()) + EXPIRE_S - _MARGIN_S
            failure: SettingsError | None = None
            try:
                async with asyncio.timeout(max(0.0, due_s - time.monotonic())):
                    await self._renew(before)
            except TimeoutError:
                failure = self._lost("Redis has not answered in time")
            except SettingsError as error:
                failure = error
            except Exception as error:  # noqa: BLE001 - no lock may expire because its renewal ended
                failure = self._lost(f"it could not be renewed ({error!r})")
            if failure is not None:
                self._lose({name: each for name, each in before.items() if self._is_due(each)}, failure)
        self._watch = None

    async def _renew(self, held: dict[str, _Held]) -> None:
        asked_at_s = time.monotonic()
        with redis_errors(self._redis.url):
            client = await self._redis.open()
            kept = await client.register_script(_RENEW)(
                keys=[each.key for each in held.values()],
                args=[*(each.token for each in held.values()), int(EXPIRE_S * 1000)],
            )
        for (name, each), is_kept in zip(held.items(), kept, strict=True):
            if is_kept:
                each.renewed_at_s = asked_at_s
            else:
                self._lose({name: each}, self._lost(_EXPIRED))

    def _is_due(self, held: _Held) -> bool:
        """Whether a lock may expire before the next try to renew it has an answer."""
        return time.monotonic() + self._check_every_s >= held.renewed_at_s + EXPIRE_S - _MARGIN_S

    def _lose(self, held: dict[str, _Held], error: SettingsError) -> None:
        for name, each in held.items():
            if self._held.get(name) is each:
                del self._held[name]
                each.holder.lose(error)

    def _lost(self, why: str) -> StoreFailure:
        where = str(Address(self._redis.url))
        return StoreFailure(f"A lock in Redis at {where!r} was lost: {why}. Ask again; what is saved is kept.")
