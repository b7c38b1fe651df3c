"""The journal of model calls in Redis: a hash for each root thread, with three fields for each call."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from ..calls.journal import CallJournal, JournaledCall, call_of
from ..calls.kept import CallResult
from ..calls.record import CallRecord
from ..storage.redis import FORMAT_KEY, RedisAtFirstUse, bytes_of, emptied, key, redis_errors

_ACCOUNT = b"account"
_ESTIMATE, _KEPT, _LOST = b"e", b"k", b"l"
"""Last byte of the fields of a call: what it may cost, its reply, and how often it was made without one."""

_BEGIN = """
if redis.call('GET', KEYS[2]) ~= ARGV[4] then return 'emptied' end
if redis.call('HSETNX', KEYS[1], ARGV[1] .. 'e', ARGV[2]) == 0 then
  redis.call('HINCRBY', KEYS[1], ARGV[1] .. 'l', 1)
end
redis.call('HSETNX', KEYS[1], 'account', ARGV[3])
"""
_KEEP = """
if redis.call('HEXISTS', KEYS[1], ARGV[1] .. 'e') == 1 then redis.call('HSET', KEYS[1], ARGV[1] .. 'k', ARGV[2]) end
"""
_DROP = """
redis.call('HDEL', KEYS[1], ARGV[1] .. 'e', ARGV[1] .. 'k', ARGV[1] .. 'l')
if redis.call('HLEN', KEYS[1]) < 2 then redis.call('DEL', KEYS[1]) end
"""
_FORGET = """
for _, name in ipairs(KEYS) do
  if (redis.call('HGET', name, 'account') or '') == '' then redis.call('DEL', name) end
end
"""


class RedisJournal(CallJournal):
    """A journal in Redis; see ``CallJournal``. All calls of a root thread have one account."""

    def __init__(self, url: str) -> None:
        """Use the Redis at ``url``, connected at the first call."""
        self._redis = RedisAtFirstUse(url)

    async def begin(self, key: bytes, root: str, account: str, estimate: CallRecord) -> None:
        """Note a call in one round trip, as ``CallJournal.begin`` says."""
        with redis_errors(self._redis.url):
            client, packed = await self._redis.open(), _packed(json.dumps(estimate, separators=(",", ":")))
            said = await client.register_script(_BEGIN)(
                keys=[_key(root), FORMAT_KEY], args=[key, packed, account, self._redis.mark]
            )
        if said == b"emptied":
            raise emptied(self._redis.url)

    async def keep(self, key: bytes, root: str, kept: CallResult) -> None:
        """Save the reply of a call in one round trip."""
        await self._run(_KEEP, [root], key, _packed(kept.to_json()))

    async def drop(self, key: bytes, root: str) -> None:
        """Delete a failed call, as ``CallJournal.drop`` says."""
        await self._run(_DROP, [root], key)

    async def calls_of(self, root: str) -> dict[bytes, JournaledCall]:
        """Return the calls of a root thread and of the threads below it, by key."""
        with redis_errors(self._redis.url):
            client = await self._redis.open()
            return _calls_in(await client.hgetall(_key(root)))

    async def booked_calls(self, name: str | None = None) -> list[JournaledCall]:
        """Return the calls booked to ``name``, as ``CallJournal.booked_calls`` says; it looks through all keys."""
        found: list[JournaledCall] = []
        with redis_errors(self._redis.url):
            client = await self._redis.open()
            for each in [each async for each in client.scan_iter(match=_key("*"), count=1000)]:
                fields = await client.hgetall(each)
                account = bytes_of(fields.get(_ACCOUNT, b"")).decode()
                if account == name or (name is None and account):
                    found += _calls_in(fields).values()
        return found

    async def forget(self, roots: Iterable[str]) -> None:
        """Delete the calls of finished or deleted root threads, except booked ones."""
        if chosen := list(roots):
            await self._run(_FORGET, chosen)

    async def delete_accounts(self, names: Collection[str]) -> None:
        """Delete the calls that are booked to these names; it looks through all keys."""
        if not names:
            return
        with redis_errors(self._redis.url):
            client = await self._redis.open()
            for each in [each async for each in client.scan_iter(match=_key("*"), count=1000)]:
                if bytes_of(await client.hget(each, "account") or b"").decode() in names:
                    await client.delete(each)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def _run(self, script: str, roots: Collection[str], *arguments: bytes | str) -> None:
        with redis_errors(self._redis.url):
            client = await self._redis.open()
            await client.register_script(script)(keys=[_key(root) for root in roots], args=list(arguments))


def _key(root: str) -> bytes:
    return key("calls", root)


def _calls_in(answer: Mapping[Any, Any]) -> dict[bytes, JournaledCall]:
    fields = cast(Mapping[bytes, bytes], answer)
    account = fields.get(_ACCOUNT, b"").decode()
    return {
        field[:-1]: call_of(
            account,
            _unpacked(value),
            _unpacked(fields[field[:-1] + _KEPT]) if field[:-1] + _KEPT in fields else None,
            int(fields.get(field[:-1] + _LOST, 0)),
        )
        for field, value in fields.items()
        if field != _ACCOUNT and field.endswith(_ESTIMATE)
    }


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def _unpacked(data: bytes) -> str:
    return zlib.decompress(data).decode("utf-8", "surrogatepass")
