"""Checkpoints in Redis, with the journal, transcripts and locks in the same database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, asynccontextmanager

from ...modules.addresses import Address
from ...modules.calls.journal import CallJournal
from ...modules.calls.transcripts import TranscriptPlace
from ...modules.journals.redis import RedisJournal
from ...modules.locks.locks import Locks
from ...modules.locks.redis import RedisLocks
from ...modules.storage.redis import check_writable, open_redis, redis_errors, report_of
from ...modules.storage.server_report import ServerReport
from ..savers.redis_saver import RedisSaver
from ..savers.serializer import serializer
from .contract import CheckpointStore, Saver


class RedisStore(CheckpointStore):
    """Checkpoints that machines share, in memory that Redis logs; see ``CheckpointStore``."""

    @asynccontextmanager
    async def open_saver(self) -> AsyncIterator[Saver]:
        """Connect; nothing needs to be made."""
        async with open_redis(self.url) as (client, mark):
            yield RedisSaver(client, mark, url=self.url, serde=serializer())

    def errors(self) -> AbstractContextManager[None]:
        """Turn errors of Redis into a ``StoreFailure``."""
        return redis_errors(self.url)

    def locks(self, *, check_every_s: float) -> Locks:
        """Return keys that expire, and are renewed while they are held."""
        return RedisLocks(self.url, check_every_s=check_every_s)

    def open_journal(self) -> AbstractAsyncContextManager[CallJournal]:
        """Open the journal in hashes of the database."""
        return aclosing(RedisJournal(self.url))

    def transcripts(self) -> TranscriptPlace | None:
        """Return hashes of the database."""
        return TranscriptPlace(url=Address(self.url))

    async def check_writable(self) -> None:
        """Write a key that expires at once."""
        async with open_redis(self.url) as (client, _):
            with self.errors():
                await check_writable(client)

    async def report(self) -> ServerReport | None:
        """Ask for version, modules, persistence and eviction."""
        async with open_redis(self.url) as (client, _):
            with self.errors():
                return await report_of(client)
