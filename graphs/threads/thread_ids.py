"""Ids of threads: those of search trees are the caller's, those of all else begin with a prefix of judgetree's."""

from __future__ import annotations

from ...modules.errors import SettingsError
from ...modules.storage.texts import check_id

CONVERSATION = "conversation:"
"""Begins the thread of a conversation; its name follows."""
TURN = "turn:"
"""Begins the thread of a turn until its answer is saved; the thread of its search follows."""
STORE = "judgetree:store"
"""The thread with the identity of a checkpoint store."""
_TAKEN = (CONVERSATION, TURN, "judgetree:")


def check_thread_id(thread_id: object) -> None:
    """Check that every store can keep a thread's id.

    Raises:
        SettingsError: The id is too long, or holds NUL or half a surrogate pair.
    """
    check_id("The thread id", thread_id)


def check_search_thread_id(thread_id: object) -> None:
    """Check an id under which a search is about to be saved.

    Raises:
        SettingsError: It cannot be kept, or is that of a conversation, a turn or the store, which would be overwritten.
    """
    check_thread_id(thread_id)
    if str(thread_id).startswith(_TAKEN):
        raise SettingsError(
            f"The thread id {str(thread_id)[:60]!r} is not for questions: conversations and their turns are kept under "
            f"ids that begin with {', '.join(_TAKEN)}. Take another id."
        )
