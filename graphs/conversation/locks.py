"""One turn at a time for each conversation: within the process, and between processes that share its checkpoints."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ...modules.errors import ConversationBusy, SettingsError
from .shared_locks import CHECK_EVERY_S, HeldLock, shared_locks

logger = logging.getLogger(__name__)

_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.02, 0.5
"""Between two looks at a lock that another process has; each wait is half as long again as the one before."""


@dataclass(kw_only=True)
class _Line:
    """Those of this process who hold or wait for a conversation; they come in the order in which they asked."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class ConversationLocks:
    """The locks of all conversations whose checkpoints are at one URL.

    Processes exclude each other where the checkpoints are in PostgreSQL (advisory locks of one connection) or SQLite
    (locked files beside the database); checkpoints in memory belong to one process. A process that is killed frees what
    it had. Within a process turns come in the order in which they asked, between processes in any.

    To be used on one event loop: that of ``background_loop()``.
    """

    def __init__(self, checkpoint_url: str, *, check_every_s: float = CHECK_EVERY_S) -> None:
        """Nothing is opened before the first ``hold``.

        Args:
            checkpoint_url: See ``checkpoints``.
            check_every_s: How soon a turn learns that PostgreSQL is gone, and its lock with it.

        Raises:
            SettingsError: No checkpoint store has such a URL.
        """
        self._shared = shared_locks(checkpoint_url, check_every_s=check_every_s)
        self._lines: dict[str, _Line] = {}

    @asynccontextmanager
    async def hold(self, conversation_id: str, *, wait: bool = True) -> AsyncIterator[None]:
        """Have a conversation to oneself. Who holds it and asks again waits for ever.

        A lock that is lost on the way (PostgreSQL was restarted, or cannot be reached) ends the work: its task is
        cancelled within seconds, and ``SettingsError`` is raised here, also where the work had just ended.

        Args:
            conversation_id: Its id.
            wait: False raises where somebody else holds it, or waits for it in this process.

        Raises:
            ConversationBusy: As said above.
            SettingsError: The locks cannot be used, or this one was lost.
            DependencyError: PostgreSQL without the extra ``postgres``.
        """
        async with self._in_line(conversation_id, wait=wait):
            hold = HeldLock()
            await self._take(conversation_id, hold, wait=wait)
            try:
                async with hold.ending_when_lost():
                    yield
            except BaseException:
                try:
                    await self._shared.free(conversation_id, hold)
                except SettingsError as error:
                    logger.warning("conversation %r could not be freed: %s", conversation_id, error)
                raise
            await self._shared.free(conversation_id, hold)

    async def aclose(self) -> None:
        """Close the connection, if there is one; the next ``hold`` opens it again. Who holds a lock of it loses it."""
        await self._shared.aclose()

    @asynccontextmanager
    async def _in_line(self, conversation_id: str, *, wait: bool) -> AsyncIterator[None]:
        if not wait and conversation_id in self._lines:
            raise _busy(conversation_id)
        line = self._lines.setdefault(conversation_id, _Line())
        line.length += 1
        try:
            async with line.lock:
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[conversation_id]

    async def _take(self, conversation_id: str, hold: HeldLock, *, wait: bool) -> None:
        wait_s = _SHORTEST_WAIT_S
        while not await self._shared.take(conversation_id, hold):
            if not wait:
                raise _busy(conversation_id)
            await asyncio.sleep(wait_s * random.uniform(0.5, 1))  # so that waiting processes do not ask in step
            wait_s = min(1.5 * wait_s, _LONGEST_WAIT_S)


def _busy(conversation_id: str) -> ConversationBusy:
    return ConversationBusy(
        f"Conversation {conversation_id!r} is answering another question. Wait for its answer, then ask again."
    )
