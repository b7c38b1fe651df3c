"""A saver of LangGraph for async graphs in Redis: no module of the server is needed, and each save is one step."""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    empty_checkpoint,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from ...modules.errors import LostParts
from ...modules.storage.redis import FORMAT_KEY, emptied, key, redis_errors
from .appending import expected_newest, moved
from .places import config_of, is_inline
from .redis_names import (
    ALL,
    NAMES,
    Place,
    bound_below,
    decoded,
    encoded,
    id_in,
    keys_of,
    name_of,
    namespace_in,
    place_of,
    row_of,
)
from .redis_scripts import DELETE, LAST_SAVED, MEND, METADATA, PUT, READ, WRITE

if TYPE_CHECKING:
    from redis.asyncio import Redis

_PAGE, _READ_AT_ONCE = 500, 20
"""Checkpoints whose metadata, and those that whole, one script reads: other clients wait meanwhile."""
_INLINE = 200
"""Most characters of a text that stands in the checkpoint itself."""
_WORTH_PACKING = 200
"""Least bytes that are compressed: memory is what a Redis has least of."""
_NEWEST = "+inf"
"""Bound of numbers that leaves nothing out."""


class _Saved(NamedTuple):
    """Where a checkpoint is."""

    thread_id: str
    place: Place
    number: float


class RedisSaver(BaseCheckpointSaver[str]):
    """Keeps checkpoints in hashes. The newest is the one that was saved last, whatever the clocks of clients say.

    A thread of which Redis has lost keys is neither read nor saved (``LostParts``), nor taken for a new one. It is
    listed among all threads, and its deletion removes the keys that are left.
    """

    def __init__(self, client: Redis, mark: bytes, *, url: str, serde: SerializerProtocol) -> None:
        """Use what ``open_redis`` opened at ``url``."""
        super().__init__(serde=serde)
        self._url = url
        self._put, self._write, self._read, self._metadata, self._mend, self._last_saved, self._delete = (
            client.register_script(script) for script in (PUT, WRITE, READ, METADATA, MEND, LAST_SAVED, DELETE)
        )
        self._client, self._mark = client, mark

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the next version of a channel, which no fork from the same checkpoint has too."""
        number = 0 if current is None else int(current.split(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; returns its config.

        Raises:
            ThreadMoved: The config must follow another checkpoint than the newest.
        """
        own = config["configurable"]
        thread_id, namespace = str(own["thread_id"]), own["checkpoint_ns"]
        values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
        inline = {channel: value for channel, value in values.items() if is_inline(value, max_chars=_INLINE)}
        names = {channel: name_of(namespace, channel, versions[channel]) for channel in values if channel not in inline}
        parent, about = own.get("checkpoint_id"), json.dumps(get_serializable_checkpoint_metadata(config, metadata))
        row = row_of(parent, about, list(names.values()), self._packed({**checkpoint, "channel_values": inline}))
        given: list[str | bytes] = []
        for channel in new_versions:
            if channel in names:
                given += [names[channel], self._packed(values[channel])]
        follows = expected_newest(config)
        expected = "-" if follows is None else follows and place_of(namespace, follows)
        place = place_of(namespace, checkpoint["id"])
        head: list[str | bytes | int] = [encoded(thread_id), self._mark, place, encoded(namespace), row, about]
        head += [int(bool(parent)), expected]
        with redis_errors(self._url):
            said, newest = await self._put(
                keys=[*keys_of(thread_id), FORMAT_KEY], args=[*head, len(names), *names.values(), *given]
            )
        if said == b"moved":
            raise moved(config, id_in(newest) if newest else None)
        self._check(said, thread_id)
        return config_of(thread_id, namespace, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task on top of a checkpoint."""
        own = config["configurable"]
        thread_id, place = str(own["thread_id"]), place_of(own.get("checkpoint_ns", ""), own["checkpoint_id"])
        fields: list[str | bytes] = []
        for number, (channel, value) in enumerate(writes):
            fields += [
                json.dumps([task_id, WRITES_IDX_MAP.get(channel, number)]),
                json.dumps([channel]).encode() + b"\n" + self._packed(value),
            ]
        replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        with redis_errors(self._url):
            said = await self._write(
                keys=[key("writes", thread_id, place), key("written", thread_id), FORMAT_KEY],
                args=[self._mark, place, "HSET" if replaces else "HSETNX", *fields],
            )
        self._check(said, thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint; without an id in the config, the one that was saved last."""
        own = config["configurable"]
        namespace, checkpoint_id = own.get("checkpoint_ns", ""), get_checkpoint_id(config)
        places = [place_of(namespace, checkpoint_id)] if checkpoint_id else []
        return next(iter(await self._tuples(str(own["thread_id"]), places, namespace)), None)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, the last saved first; ``before`` leaves out that one and all that were saved after it.

        Without a thread in the config, the checkpoints of threads that have lost keys come too, with what is left of
        them.
        """
        wanted = {} if config is None else config["configurable"]
        thread_id, namespace = wanted.get("thread_id"), wanted.get("checkpoint_ns")
        checkpoint_id = None if config is None else get_checkpoint_id(config)
        if thread_id is None:
            with redis_errors(self._url):
                await self._mend(keys=[ALL, NAMES], args=[key("order", "")])
        upper, behind = _NEWEST, None
        if before is not None:
            threads = before["configurable"].get("thread_id", thread_id)
            upper, behind = await self._bound_of(get_checkpoint_id(before) or "", threads)
        left = limit
        while page := await self._page(thread_id, upper):
            upper = bound_below(page[-1].number)
            chosen = [
                each
                for each in page
                if namespace in (None, namespace_in(each.place))
                and checkpoint_id in (None, id_in(each.place))
                and (behind is None or id_in(each.place) < behind)
            ]
            chosen = await self._with_metadata(chosen, filter) if filter else chosen
            while chosen:
                count = _READ_AT_ONCE if left is None else min(_READ_AT_ONCE, left)
                for found in await self._read_all(chosen[:count], is_strict=thread_id is not None):
                    yield found
                    left = None if left is None else left - 1
                if left == 0:
                    return
                chosen = chosen[count:]

    async def alast_saved(self, prefix: str) -> Sequence[str]:
        """Return the threads whose ids begin with a prefix, the last saved first; no state is read."""
        bounds = [b"[" + encoded(prefix), b"(" + encoded(prefix) + b"\xff"]
        with redis_errors(self._url):
            said, *found = await self._last_saved(
                keys=[ALL, NAMES, FORMAT_KEY], args=[self._mark, key("order", ""), key("newest", ""), *bounds]
            )
        self._check(said, "")
        numbers = dict(zip(found[::2], map(float, found[1::2]), strict=True))
        return [decoded(thread) for thread in sorted(numbers, key=numbers.__getitem__, reverse=True)]

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread, of which no key is left; one that has lost keys takes a look at all."""
        await self._remove(thread_id, "all")

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads but the newest of each namespace, or with "delete" all."""
        for thread_id in thread_ids:
            await self._remove(thread_id, "older" if strategy == "keep_latest" else "all")

    async def _remove(self, thread_id: str, which: str) -> None:
        writes = key("writes", thread_id, "")
        pattern = re.sub(rb"([\\*?\[\]])", rb"\\\1", writes) + b"*"
        with redis_errors(self._url):
            await self._delete(keys=keys_of(thread_id), args=[encoded(thread_id), writes, pattern, which])

    async def _with_metadata(self, page: Sequence[_Saved], wanted: Mapping[str, Any]) -> list[_Saved]:
        """Return the checkpoints whose metadata have these values."""
        args = [word for each in page for word in (encoded(each.thread_id), each.place)]
        with redis_errors(self._url):
            said = await self._metadata(args=[key("saved", ""), key("values", ""), *args])
        heads = [json.loads(each) if each else None for each in said]
        return [
            each
            for each, head in zip(page, heads, strict=True)
            if head is not None and all(head.get(name) == value for name, value in wanted.items())
        ]

    async def _read_all(self, saved: Sequence[_Saved], *, is_strict: bool) -> list[CheckpointTuple]:
        """Read checkpoints in their order, those of one thread that follow each other together."""
        found: list[CheckpointTuple] = []
        for thread_id, own in groupby(saved, key=lambda each: each.thread_id):
            found += await self._tuples(thread_id, [each.place for each in own], is_strict=is_strict)
        return found

    async def _page(self, thread_id: str | None, upper: str) -> list[_Saved]:
        """Return checkpoints of a thread, or of all, with numbers up to a bound, the last saved first."""
        name = ALL if thread_id is None else key("order", thread_id)
        with redis_errors(self._url):
            said = await self._client.zrevrangebyscore(name, upper, "-inf", start=0, num=_PAGE, withscores=True)
        if thread_id is not None and not said:
            await self._tuples(thread_id, ["no place"])  # the set may be what was lost
        return [_saved_of(member, number, thread_id) for member, number in cast(Sequence[tuple[bytes, float]], said)]

    async def _bound_of(self, checkpoint_id: str, thread_id: str | None) -> tuple[str, str | None]:
        """Return the bound of what was saved before a checkpoint in any namespace; by ids if it is not saved."""
        upper = _NEWEST
        while page := await self._page(thread_id, upper):
            for each in page:
                if id_in(each.place) == checkpoint_id:
                    return bound_below(each.number), None
            upper = bound_below(page[-1].number)
        return _NEWEST, checkpoint_id

    async def _tuples(
        self, thread_id: str, places: Sequence[Place], namespace: str = "", *, is_strict: bool = True
    ) -> list[CheckpointTuple]:
        """Read checkpoints, without those that are not there; no place is the newest of the namespace.

        Without ``is_strict`` what Redis has lost of them is left out.
        """
        asked = [key("writes", thread_id, ""), encoded(namespace), "whole" if is_strict else "left", *places]
        with redis_errors(self._url):
            said, found = await self._read(
                keys=[*keys_of(thread_id), FORMAT_KEY], args=[encoded(thread_id), self._mark, *asked]
            )
        self._check(said, thread_id)
        if is_strict and any(value is None for _, _, values, _ in found for value in values):
            raise _lost(thread_id)
        return [self._tuple_of(thread_id, place.decode(), *parts) for place, *parts in found]

    def _tuple_of(
        self, thread_id: str, place: Place, row: bytes, values: Sequence[bytes | None], writes: Sequence[bytes]
    ) -> CheckpointTuple:
        namespace, checkpoint_id = json.loads(place)
        if row:
            head, _, packed = row.partition(b"\n")
            parent, metadata, names = json.loads(head)
            checkpoint = self._unpacked(packed)
        else:
            parent, metadata, names = None, (values or [None])[0] or "{}", []
            checkpoint = {**empty_checkpoint(), "id": checkpoint_id}
        for name, value in zip(names, values if row else (), strict=True):
            if value is not None:
                checkpoint["channel_values"][json.loads(name)[1]] = self._unpacked(value)
        return CheckpointTuple(
            config=config_of(thread_id, namespace, checkpoint_id),
            checkpoint=cast(Checkpoint, checkpoint),
            metadata=json.loads(metadata),
            parent_config=config_of(thread_id, namespace, parent) if parent else None,
            pending_writes=[self._write_of(name, write) for name, write in _in_order(writes)],
        )

    def _write_of(self, name: Sequence[Any], write: bytes) -> tuple[str, str, Any]:
        channel, _, packed = write.partition(b"\n")
        return str(name[0]), json.loads(channel)[0], self._unpacked(packed)

    def _packed(self, value: object) -> bytes:
        kind, data = self.serde.dumps_typed(value)
        whole = kind.encode() + b"\n" + data
        return b"z" + zlib.compress(whole, 1) if len(whole) >= _WORTH_PACKING else b"-" + whole

    def _unpacked(self, data: bytes) -> Any:
        whole = zlib.decompress(data[1:]) if data[:1] == b"z" else data[1:]
        kind, _, content = whole.partition(b"\n")
        return self.serde.loads_typed((kind.decode(), content))

    def _check(self, said: bytes, thread_id: str) -> None:
        if said == b"emptied":
            raise emptied(self._url)
        if said == b"lost":
            raise _lost(thread_id)


def _lost(thread_id: str) -> LostParts:
    return LostParts(
        f"Redis has lost parts of what was saved for the thread {thread_id!r}: it dropped keys (check that its "
        "maxmemory-policy is noeviction), they were deleted, or it was restarted without its last second. What is left "
        "can be deleted."
    )


def _saved_of(member: bytes, number: float, thread_id: str | None) -> _Saved:
    """Read a member of the thread's sorted set, or of that of all threads, which has length and thread before it."""
    if thread_id is not None:
        return _Saved(thread_id, member.decode(), number)
    length, _, rest = member.partition(b":")
    return _Saved(decoded(rest[: int(length)]), rest[int(length) :].decode(), number)


def _in_order(writes: Sequence[bytes]) -> list[tuple[list[Any], bytes]]:
    pairs = zip(writes[::2], writes[1::2], strict=True)
    return sorted(((json.loads(name), write) for name, write in pairs), key=lambda pair: pair[0])
