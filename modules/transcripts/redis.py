"""Transcripts in Redis: a hash for each root thread, in which each text is kept once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from ..storage.redis import FORMAT_KEY, emptied, key, new_mark, open_blocking_redis, redis_errors
from .rows import FoundRow, TranscriptRow

_ROOTS = key("transcript-roots")
"""Hash of the root of each call, by which a call is found."""
_CALL, _TEXT = b"c", b"t"
"""First byte of the fields of a call and of a text, before its key or digest."""

_ADD = """
-- KEYS: hash of the root, roots, owner, format; ARGV: key, call, root, owner, mark, then digests with their texts
if redis.call('GET', KEYS[4]) ~= ARGV[5] then return 'emptied' end
if redis.call('HSETNX', KEYS[1], 'c' .. ARGV[1], ARGV[2]) == 0 then return end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
if ARGV[4] ~= ARGV[3] then
  redis.call('HSET', KEYS[1], 'owner', ARGV[4])
  redis.call('SADD', KEYS[3], ARGV[3])
end
for i = 6, #ARGV, 2 do redis.call('HSETNX', KEYS[1], 't' .. ARGV[i], ARGV[i + 1]) end
"""
_DELETE = """
-- KEYS: roots; ARGV: name of a root or owner, start of the names of hashes, start of those of owners
local roots = redis.call('SMEMBERS', ARGV[3] .. ARGV[1])
roots[#roots + 1] = ARGV[1]
for _, root in ipairs(roots) do
  local hash = ARGV[2] .. root
  for _, field in ipairs(redis.call('HKEYS', hash)) do
    if string.sub(field, 1, 1) == 'c' then redis.call('HDEL', KEYS[1], string.sub(field, 2)) end
  end
  local owner = redis.call('HGET', hash, 'owner')
  if owner then redis.call('SREM', ARGV[3] .. owner, root) end
  redis.call('DEL', hash)
end
"""


class RedisTranscripts:
    """Writes and reads transcripts in a Redis; see ``TranscriptFile``. All calls of a root have one owner."""

    def __init__(self, url: str) -> None:
        """Use the Redis at ``url``.

        Raises:
            SettingsError: The address is malformed.
            DependencyError: The extra ``redis`` is not installed.
        """
        self._url = url
        self._client = open_blocking_redis(url)
        self._add = self._client.register_script(_ADD)
        self._delete = self._client.register_script(_DELETE)
        self._mark: bytes | None = None

    def add(self, rows: Sequence[TranscriptRow]) -> None:
        """Write rows, each whole or not at all; one whose key is there already stays as it is."""
        with redis_errors(self._url), self._client.pipeline(transaction=False) as pipeline:
            if self._mark is None:
                if (found := self._client.get(FORMAT_KEY)) is None:  # as ``open_redis`` makes it
                    self._client.set(FORMAT_KEY, new_mark(), nx=True)
                    found = self._client.get(FORMAT_KEY)
                self._mark = cast(bytes, found)
            for row in rows:
                call = json.dumps([[role, digest.hex()] for role, digest, _ in row.parts]).encode() + b"\n" + row.record
                texts = [each for _, digest, content in row.parts for each in (digest, content)]
                names = [_bytes(row.root), _bytes(row.owner)]
                self._add(
                    keys=[_hash(row.root), _ROOTS, key("transcript-owner", row.owner), FORMAT_KEY],
                    args=[row.key, call, *names, self._mark, *texts],
                    client=pipeline,
                )
            said = pipeline.execute()
        if b"emptied" in said:
            raise emptied(self._url)

    def delete(self, names: Iterable[str]) -> None:
        """Delete the rows of roots and owners with their texts."""
        starts = [key("transcript", ""), key("transcript-owner", "")]
        with redis_errors(self._url):
            for name in names:
                self._delete(keys=[_ROOTS], args=[_bytes(name), *starts])

    def read(self, keys: Sequence[bytes], root: str) -> Iterator[FoundRow]:
        """Read the rows with these keys, and those of a root unless it is ``""``, in no order."""
        with redis_errors(self._url):
            wanted: defaultdict[bytes, list[bytes]] = defaultdict(list)
            found = cast(list[bytes | None], self._client.hmget(_ROOTS, cast(Any, keys))) if keys else []
            for call, own in zip(keys, found, strict=True):
                if own is not None:
                    wanted[own].append(call)
            if root:
                wanted[_bytes(root)] = []  # all of its calls
            for own, calls in wanted.items():
                fields = _answer(self._client.hgetall(key("transcript", "") + own))
                yield from _rows_in(fields, calls or [field[1:] for field in fields if field[:1] == _CALL])

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _rows_in(fields: Mapping[bytes, bytes], calls: Iterable[bytes]) -> Iterator[FoundRow]:
    for call in calls:
        head, _, record = fields.get(_CALL + call, b"").partition(b"\n")
        if head:
            parts = ((role, fields.get(_TEXT + bytes.fromhex(digest), b"")) for role, digest in json.loads(head))
            yield FoundRow(key=call, record=record, parts=tuple(parts))


def _answer(fields: object) -> Mapping[bytes, bytes]:
    return cast(Mapping[bytes, bytes], fields)


def _hash(root: str) -> bytes:
    return key("transcript", root)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
