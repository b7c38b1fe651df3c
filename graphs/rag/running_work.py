"""What an object is doing, so that closing it ends that with a clear error, and a forked process cannot use it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...modules.errors import SessionError


class RunningWork:
    """The tasks that an object's methods run on judgetree's own loop, in the process that used it first."""

    def __init__(self, what: str) -> None:
        """``what``: the object in a message, such as "session"."""
        self._what = what
        self._tasks: set[asyncio.Task[object]] = set()
        self._ended: set[asyncio.Task[object]] = set()
        self._changed = asyncio.Event()
        self._pid: int | None = None

    @property
    def is_of_another_process(self) -> bool:
        """True in a process that was forked from the one that uses the object."""
        return self._pid is not None and self._pid != os.getpid()

    def check_process(self) -> None:
        """Take note of the process at the first use.

        Raises:
            SessionError: The process was forked from that of the first use.
        """
        if self.is_of_another_process:
            raise SessionError(
                f"This {self._what} was opened in process {self._pid} and cannot be used in process {os.getpid()}, "
                f"which was forked from it. Make a new one after the fork."
            )
        self._pid = os.getpid()

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Do some work in here.

        Raises:
            SessionError: The object was closed meanwhile; or see ``check_process``.
        """
        self.check_process()
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            task.uncancel()
            raise SessionError(
                f"The {self._what} was closed while this question ran. What was done is kept: ask again on its thread."
            ) from None
        finally:
            self._tasks.discard(task)
            self._ended.discard(task)
            self._changed.set()

    async def end(self) -> None:
        """Cancel the work of all other tasks and wait until it has wound up."""
        own = asyncio.current_task()
        for task in self._tasks - {own}:
            self._ended.add(task)
            task.cancel()
        while self._tasks - {own}:
            self._changed.clear()
            await self._changed.wait()
