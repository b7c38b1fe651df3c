"""Locks by name of one process, and what the locks that processes share have in common: holders and waiting in line."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ..errors import ConversationBusy, SettingsError

logger = logging.getLogger(__name__)

_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.02, 0.5
"""Between two looks at a lock that another process has; each wait is half as long again as the one before."""


class Holder:
    """A task that holds locks. Losing one ends the task's work."""

    def __init__(self) -> None:
        """Of the current task."""
        task = asyncio.current_task()
        if task is None:
            raise SettingsError("Locks can be held by an asyncio task only.")
        self._task = task
        self._cancelled_before = task.cancelling()
        self._works = False
        self.lost: SettingsError | None = None
        """Why a lock was lost; None while all are held."""

    def lose(self, error: SettingsError) -> None:
        """Cancel the task while it is in ``ending_when_lost``, which then raises the error."""
        if self.lost is None:
            self.lost = error
            if self._works:
                self._task.cancel()

    @asynccontextmanager
    async def ending_when_lost(self) -> AsyncIterator[None]:
        """Around the work that needs the locks. A cancellation by others stays one.

        Raises:
            SettingsError: A lock was lost meanwhile.
        """
        self._works = True
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
        finally:
            self._works = False


@dataclass(kw_only=True)
class _Line:
    """The tasks of this process that hold or wait for one lock; they come in the order in which they asked."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class Locks:
    """Locks within one process, and the base of those that processes share; one object is used on one event loop.

    A process that is killed frees its locks. ``take`` and ``free`` are for names that one task of a process uses at a
    time; ``hold`` waits in line for a conversation.
    """

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    async def take(self, name: str, holder: Holder) -> bool:
        """Whether ``holder`` has the lock now; False while another process has it. Cancelled, it takes nothing.

        Raises:
            SettingsError: The locks cannot be used.
            DependencyError: PostgreSQL without the extra ``postgres``.
        """
        return True

    async def free(self, name: str, holder: Holder) -> None:
        """Give back what ``take`` took; a lost lock is left alone. A cancellation does not stop it.

        Raises:
            SettingsError: The lock turns out to be lost, perhaps for some time.
        """

    async def aclose(self) -> None:
        """Close the connection, if there is one; holders lose its locks. The next ``take`` opens it again."""

    @asynccontextmanager
    async def hold(self, name: str, *, wait: bool = True) -> AsyncIterator[None]:
        """Have a conversation to oneself; a task that holds it and asks again waits for ever.

        Tasks of a process have it in the order in which they asked, processes in any order.

        Raises:
            ConversationBusy: ``wait`` is False, and another task holds it, or waits for it in this process.
            SettingsError: The locks cannot be used, or this one was lost, which cancels the work within seconds.
            DependencyError: PostgreSQL without the extra ``postgres``.
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
                    logger.warning("conversation %r could not be freed: %s", name, error)
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


def digest_of(name: str) -> bytes:
    """32 bytes that stand for a name of any length and any characters."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
