"""Status of a thread from its newest checkpoint: missing, finished, failed or open."""

from __future__ import annotations

from typing import Literal

from langgraph.types import StateSnapshot

ThreadStatus = Literal["finished", "failed", "open"]
"""finished: ran to its end. failed: a node raised. open: running, killed, or not started yet."""


class NewThreadId(str):
    """Id in the config of a run whose thread was named at random just now: no store holds anything of its tree."""

    __slots__ = ()


def is_absent(snapshot: StateSnapshot) -> bool:
    """Return True for a thread without a checkpoint."""
    return snapshot.created_at is None


def is_new_thread(snapshot: StateSnapshot) -> bool:
    """Return True for a search thread without a question: it does not exist, or was killed before taking its input.

    Between the first and the second checkpoint, the input of a run is only among the pending writes.
    """
    return is_absent(snapshot) or "query" not in snapshot.values


def is_finished(snapshot: StateSnapshot) -> bool:
    """Return True for a thread that ran to its end.

    ``snapshot.next`` leaves out tasks with saved results, so it is also empty after a kill between the last task of a
    step and the checkpoint after it.
    """
    return not is_absent(snapshot) and not snapshot.tasks


def errors_of(snapshot: StateSnapshot) -> list[str]:
    """List the errors of the newest step as text; cancelled nodes (Ctrl-C) are left out."""
    errors = [task.error for task in snapshot.tasks if task.error is not None]
    # A checkpoint store returns an exception as the text of its ``repr``.
    texts = [error if isinstance(error, str) else repr(error) for error in errors]
    return [text for text in texts if not text.startswith("CancelledError(")]


def status_of(snapshot: StateSnapshot) -> ThreadStatus:
    """Classify a thread: finished (ran to its end), failed (a node raised) or open (running, killed or cancelled)."""
    if is_finished(snapshot):
        return "finished"
    return "failed" if errors_of(snapshot) else "open"
