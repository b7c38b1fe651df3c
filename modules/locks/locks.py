"""Locks by name within one process, and the base of those that processes share: holders and waiting in line."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ..errors import ConversationBusy, SettingsError

logger = logging.getLogger(__name__)

CHECK_EVERY_S = 2.0
"""Seconds between two checks that a server still holds a lock."""
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.02, 0.5
"""Wait between two tries to take a lock that another process has; each wait is 1.5 times the one before."""


class Holder:
    """A task that holds locks; the loss of one ends its work."""

    def __init__(self) -> None:
        """Take the current task as the holder.

        Raises:
            SettingsError: No asyncio task is running.
        """
        task = asyncio.current_task()
        if task is None:
            raise SettingsError("Locks can be held by an asyncio task only.")
        self._task = task
        self._cancelled_before = task.cancelling()
        self._works = False
        self.lost: SettingsError | None = None
        """The error of a lost lock; None while all are held."""

    def lose(self, error: SettingsError) -> None:
        """Note the loss of a lock; work inside ``ending_when_lost`` is cancelled, and raises the error there."""
        if self.lost is None:
            self.lost = error
            if self._works:
                self._task.cancel()

    @asynccontextmanager
    async def ending_when_lost(self) -> AsyncIterator[None]:
        """Cancel the work inside the block as soon as a lock is lost; other cancellations pass through.

        Raises:
            SettingsError: A lock was lost.
        """
        self._works = True
        try:
            yield
            if self.lost is not None:
                await asyncio.sleep(
                    0
                )  # the work ended before its cancellation arrived, which must not hit what follows
        except (Exception, asyncio.CancelledError) as error:
            if self.lost is None:
                raise
            if self._task.uncancel() > self._cancelled_before and isinstance(error, asyncio.CancelledError):
                raise
            raise self.lost from error
        finally:
            self._works = False


@dataclass(kw_only=True)
class _Line:
    """The tasks of this process that hold or wait for one lock, served in the order in which they asked."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class Locks:
    """Locks within one process, and the base of those that processes share; one object is used on one event loop.

    A process that is killed frees its locks. ``take`` and ``free`` are for names that one task of a process uses at a
    time, such as the questions of a shared run; ``hold`` serves tasks in line, such as the turns of a conversation.
    """

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    async def take(self, name: str, holder: Holder) -> bool:
        """Take a lock for ``holder``; return False if another process has it. A cancelled call takes nothing.

        Raises:
            SettingsError: The locks cannot be used.
            DependencyError: The extra of the store is not installed.
        """
        return True

    async def free(self, name: str, holder: Holder) -> None:
        """Free a lock that ``take`` took; a lost lock is left alone. A cancellation does not stop it.

        Raises:
            SettingsError: The lock had been lost.
        """

    async def aclose(self) -> None:
        """Close the connection if there is one, which takes the locks from their holders; ``take`` opens it again."""

    @asynccontextmanager
    async def hold(self, name: str, *, wait: bool = True) -> AsyncIterator[None]:
        """Hold a lock inside the block; a task that holds it and asks again waits for ever.

        Tasks of a process get it in the order in which they asked, processes in any order.

        Raises:
            ConversationBusy: ``wait`` is False, and another task holds the lock, or waits for it in this process.
            SettingsError: The locks cannot be used, or this one was lost, which cancels the work within seconds.
            DependencyError: The extra of the store is not installed.
        """
        async with self._in_line(name, wait=wait):
            holder = Holder()
            await self._take_in_time(name, holder, wait=wait)
            try:
                async with holder.ending_when_lost():
                    yield
            except BaseException:
                try:
                    await self.free(name, holder)
                except SettingsError as error:
                    logger.warning("The lock %r could not be freed: %s", name, error)
                raise
            await self.free(name, holder)

    @asynccontextmanager
    async def _in_line(self, name: str, *, wait: bool) -> AsyncIterator[None]:
        if not wait and name in self._lines:
            raise _busy(name)
        line = self._lines.setdefault(name, _Line())
        line.length += 1
        try:
            async with line.lock:
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[name]

    async def _take_in_time(self, name: str, holder: Holder, *, wait: bool) -> None:
        wait_s = _SHORTEST_WAIT_S
        while not await self.take(name, holder):
            if not wait:
                raise _busy(name)
            await asyncio.sleep(wait_s * random.uniform(0.5, 1))  # so that waiting processes do not ask in step
            wait_s = min(1.5 * wait_s, _LONGEST_WAIT_S)


def _busy(name: str) -> ConversationBusy:
    return ConversationBusy(
        f"Conversation {name!r} is answering another question. Wait for its answer, then ask again."
    )


async def uncancelled(work: Coroutine[object, object, bool] | asyncio.Future[bool]) -> bool:
    """Return the result of the work; a cancellation of the caller is raised once the work has ended."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # retrieved, so that asyncio does not log it
        raise cancelled
    return task.result()
