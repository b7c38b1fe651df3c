"""Failures of the checkpoint store that name the thread or conversation that was asked, and what to do with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

from ...modules.errors import LostParts, StoreFailure


class NamesThread(AbstractAsyncContextManager["NamesThread"]):
    """Adds the thread to a failure of the store in the middle of its search."""

    def __init__(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self.has_begun = False
        """Whether the search has begun; a failure before it leaves nothing to go on with."""

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not self.has_begun or not isinstance(error, StoreFailure):
            return
        if isinstance(error, LostParts):
            said = f"The question's thread is {self._thread_id!r}, which cannot be resumed: ask under another id."
        else:
            option = shlex.join(["--thread-id", self._thread_id])
            said = f"What was saved of the question is kept; once the store works, ask it again with {option}"
        raise type(error)(f"{error} {said}") from error


@contextmanager
def naming_conversation(name: str) -> Iterator[None]:
    """Add the conversation, and how it is deleted, to the error of a store that has lost some of its keys.

    Raises:
        LostParts: It has.
    """
    try:
        yield
    except LostParts as error:
        command = shlex.join(["judgetree", "conversations", "delete", name])
        raise LostParts(f"{error} The conversation is {name!r}; to delete what is left of it: {command}") from error
