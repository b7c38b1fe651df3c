"""Locks on conversations between processes that share their checkpoints: files beside SQLite, or PostgreSQL's own."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from ...modules.addresses import Address
from ...modules.advisory_locks import AdvisoryLocks, advisory_key, open_advisory_locks, uncancelled
from ...modules.errors import SettingsError
from ...modules.settings import without_secrets
from ..threads.checkpoints import ALLOWED_URLS, is_postgres

CHECK_EVERY_S = 2.0
"""Between two looks at whether PostgreSQL is still there."""
_REMEDY = "Check JUDGETREE_CHECKPOINTS and that it runs, then ask again."


class HeldLock:
    """A turn that has its conversation's lock, as those see it who find that the lock is lost."""

    def __init__(self) -> None:
        """Of the current task."""
        task = asyncio.current_task()
        if task is None:
            raise SettingsError("A conversation can be held by an asyncio task only.")
        self._task = task
        self._cancelled_before = task.cancelling()
        self.lost: SettingsError | None = None
        """Why it has the lock no more; None while it has it."""

    def lose(self, error: SettingsError) -> None:
        """End its task's work: it is cancelled, and what it raises then becomes the error."""
        if self.lost is None:
            self.lost = error
            self._task.cancel()

    @asynccontextmanager
    async def ending_when_lost(self) -> AsyncIterator[None]:
        """Around the work; see ``lose``. A cancellation by others stays one."""
        try:
            yield
            if self.lost is not None:
                await asyncio.sleep(0)  # its cancellation came too late for the work, and must not hit what follows
        except (Exception, asyncio.CancelledError) as error:
            if self.lost is None:
                raise
            if self._task.uncancel() > self._cancelled_before and isinstance(error, asyncio.CancelledError):
                raise
            raise self.lost from error


class SharedLocks(Protocol):
    """Locks between processes; within a process only one at a time asks for the lock of a conversation."""

    async def take(self, conversation_id: str, hold: HeldLock) -> bool:
        """Whether ``hold`` has it now; False while another process does. Cancelled meanwhile, it takes nothing."""
        ...

    async def free(self, conversation_id: str, hold: HeldLock) -> None:
        """Give it back; nothing if it is lost."""
        ...

    async def aclose(self) -> None:
        """Let go of what the locks stand on; who has one still loses it."""
        ...


class NoOtherProcess:
    """For checkpoints that no other process sees."""

    async def take(self, conversation_id: str, hold: HeldLock) -> bool:
        """True."""
        return True

    async def free(self, conversation_id: str, hold: HeldLock) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""


class FileLocks:
    """A locked file for each held conversation, in a folder beside the database.

    The operating system unlocks what a process had that dies.
    """

    def __init__(self, database: Path) -> None:
        resolved = database.resolve()
        self._folder = resolved.with_name(f"{resolved.name}.turns")
        self._held: dict[str, FileLock] = {}

    async def take(self, conversation_id: str, hold: HeldLock) -> bool:
        """See ``SharedLocks.take``.

        Raises:
            SettingsError: The folder cannot be written.
        """
        name = hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        lock = FileLock(self._folder / f"{name}.lock", timeout=0, thread_local=False)
        taking = asyncio.ensure_future(asyncio.to_thread(self._take, lock))
        try:
            taken = await uncancelled(taking)
        except asyncio.CancelledError:
            with suppress(SettingsError):
                if await taking:
                    await uncancelled(asyncio.to_thread(_let_go, lock))
            raise
        if taken:
            self._held[conversation_id] = lock
        return taken

    async def free(self, conversation_id: str, hold: HeldLock) -> None:
        """See ``SharedLocks.free``. The file goes too."""
        await uncancelled(asyncio.to_thread(_let_go, self._held.pop(conversation_id)))

    async def aclose(self) -> None:
        """Do nothing: there is nothing besides the locks."""

    def _take(self, lock: FileLock) -> bool:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            return False
        except OSError as error:
            raise SettingsError(
                f"The folder {str(self._folder)!r} cannot hold the locks of conversations: {error}. Make it writable, "
                "or set JUDGETREE_CHECKPOINTS to a database in a folder that is."
            ) from error
        return True


def _let_go(lock: FileLock) -> None:
    # Before it is unlocked: whoever has opened the file meanwhile sees that it is gone, and makes another.
    with suppress(OSError):  # Windows removes no open file
        Path(lock.lock_file).unlink()
    lock.release()


class PostgresLocks:
    """Advisory locks of one connection, however many conversations are held; it is opened at the first, and anew.

    With the connection every lock is lost. While any is held, the connection is asked for a sign of life every
    ``check_every_s`` seconds; without one, the turns that had locks are ended. The server itself gives the locks of a
    host that has vanished to others after a minute (its keep-alives), which is later.
    """

    def __init__(self, url: str, *, check_every_s: float = CHECK_EVERY_S) -> None:
        self._url = Address(url)
        self._check_every_s = check_every_s
        self._opening = asyncio.Lock()
        self._resources = AsyncExitStack()
        self._locks: AdvisoryLocks | None = None
        self._holds: set[HeldLock] = set()
        self._watch: asyncio.Task[None] | None = None

    async def take(self, conversation_id: str, hold: HeldLock) -> bool:
        """See ``SharedLocks.take``. One round trip.

        Raises:
            SettingsError: PostgreSQL cannot be reached.
            DependencyError: The extra ``postgres`` is not installed.
        """
        taken = await self._try_take(conversation_id)
        if taken is None:  # the connection was lost since it was last used, so a new one may do
            taken = await self._try_take(conversation_id)
        if taken:
            self._holds.add(hold)
            if self._watch is None:
                self._watch = asyncio.create_task(self._watch_connection(), name="conversation-locks")
        return bool(taken)

    async def free(self, conversation_id: str, hold: HeldLock) -> None:
        """See ``SharedLocks.free``. One round trip.

        Raises:
            SettingsError: The lock is lost, maybe for some time.
        """
        self._holds.discard(hold)
        locks = self._locks
        if hold.lost is not None or locks is None:
            return
        try:
            await locks.free(_key(conversation_id))
        except SettingsError as error:
            await self._lose(locks, error)
            raise

    async def aclose(self) -> None:
        """Close the connection, if there is one."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
            self._watch = None
        if self._locks is not None:
            closed = SettingsError(f"The locks in {str(self._url)!r} were closed while a turn had one.")
            await self._lose(self._locks, closed)

    async def _try_take(self, conversation_id: str) -> bool | None:
        """None: the connection is lost."""
        locks = await self._opened()
        try:
            taken = await locks.take(_key(conversation_id))
        except SettingsError as error:
            if locks.is_open:
                raise
            await self._lose(locks, error)
            return None
        return taken if self._locks is locks else None

    async def _opened(self) -> AdvisoryLocks:
        async with self._opening:
            if self._locks is None:
                self._locks = await self._resources.enter_async_context(open_advisory_locks(self._url, remedy=_REMEDY))
            return self._locks

    async def _watch_connection(self) -> None:
        while self._holds and (locks := self._locks) is not None:
            try:
                await locks.check()
            except SettingsError as error:
                await self._lose(locks, error)
            await asyncio.sleep(self._check_every_s)
        self._watch = None

    async def _lose(self, locks: AdvisoryLocks, error: SettingsError) -> None:
        if self._locks is not locks:
            return  # somebody else has seen it, and there may be a new connection
        self._locks = None
        holds, self._holds = self._holds, set()
        for hold in holds:
            hold.lose(error)
        resources, self._resources = self._resources, AsyncExitStack()
        await resources.aclose()


def _key(conversation_id: str) -> int:
    return advisory_key("conversation", conversation_id)


def shared_locks(checkpoint_url: str, *, check_every_s: float = CHECK_EVERY_S) -> SharedLocks:
    """The locks that belong to a checkpoint store. Nothing is opened before the first is taken.

    ``check_every_s`` is for PostgreSQL (see ``PostgresLocks``).

    Raises:
        SettingsError: No checkpoint store has such a URL.
    """
    if checkpoint_url == "memory:":
        return NoOtherProcess()
    if is_postgres(checkpoint_url):
        return PostgresLocks(checkpoint_url, check_every_s=check_every_s)
    if checkpoint_url.startswith("sqlite:///") and (database := Path(checkpoint_url.removeprefix("sqlite:///"))).name:
        return FileLocks(database)
    shown = without_secrets(Address(checkpoint_url))
    raise SettingsError(f"Unknown checkpoint store {shown!r}. Allowed: {ALLOWED_URLS}. Set JUDGETREE_CHECKPOINTS.")
