"""Tracks the tasks of an object, so that ``close`` can end them and a forked process cannot use the object."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...modules.errors import SessionError


class RunningWork:
    """The tasks that run an object's methods on judgetree's own loop, in the process that used the object first."""

    def __init__(self, what: str) -> None:
        """Name the object in messages ``what``, such as "session"."""
        self._what = what
        self._tasks: set[asyncio.Task[object]] = set()
        self._ended: set[asyncio.Task[object]] = set()
        self._changed = asyncio.Event()
        self._pid: int | None = None

    @property
    def is_of_another_process(self) -> bool:
        """True in a process that was forked from the one that used the object first."""
        return self._pid is not None and self._pid != os.getpid()

    def check_process(self) -> None:
        """Remember the process of the first use, and refuse all others.

        Raises:
            SessionError: This process was forked from the process of the first use.
        """
        if self.is_of_another_process:
            raise SessionError(
                f"This {self._what} was opened in process {self._pid} and cannot be used in process {os.getpid()}, "
                f"which was forked from it. Make a new one after the fork."
            )
        self._pid = os.getpid()

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Register the current task while its work runs inside.

        Raises:
            SessionError: The object was closed during the work, or see ``check_process``.
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
            task.uncancel()  # ``end`` cancelled the task; the caller gets an error instead
            raise SessionError(
                f"The {self._what} was closed while this question ran. What was done is kept: ask again on its thread."
            ) from None
        finally:
            self._tasks.discard(task)
            self._ended.discard(task)
            self._changed.set()

    async def end(self) -> None:
        """Cancel all other registered tasks and wait until each has left ``entered``."""
        own = asyncio.current_task()
        for task in self._tasks - {own}:
            self._ended.add(task)
            task.cancel()
        while self._tasks - {own}:
            self._changed.clear()
            await self._changed.wait()
