"""Which search trees a caller may see."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path

from ....modules.storage.texts import MAX_ID_BYTES, check_id
from ...stores.saved_trees import TreeThread
from ..serving.caller import Caller, CallerBy
from ..serving.errors import ApiError
from ..serving.served import Served, ServedBy

ThreadId = Annotated[
    str, Path(min_length=1, max_length=MAX_ID_BYTES, description="Thread of a question or of a sub-question.")
]


async def find_thread(thread_id: str, served: Served, caller: Caller) -> TreeThread:
    """Return the head of a thread that the caller may see.

    That is one of the caller's conversations; those of no conversation are for the user of this machine.

    Raises:
        ApiError: HTTP 404.
        SettingsError: No store can keep such an id.
    """
    check_id("The thread id", thread_id)
    thread = await served.trees.find(thread_id)
    if thread is None or not await _may_see(thread, served, caller):
        raise ApiError.not_found("tree", thread_id)
    return thread


async def _may_see(thread: TreeThread, served: Served, caller: Caller) -> bool:
    if caller.is_local:
        return True
    name = await served.trees.conversation_name(thread.conversation_id) if thread.conversation_id else None
    return name is not None and caller.shown_name(name) is not None


async def thread_of(thread: ThreadId, served: ServedBy, caller: CallerBy) -> TreeThread:
    """Return the head of the thread in the path."""
    return await find_thread(thread, served, caller)


ThreadBy = Annotated[TreeThread, Depends(thread_of)]
