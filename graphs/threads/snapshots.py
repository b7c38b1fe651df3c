"""What a checkpoint says of its thread: never written, finished, failed or open."""

from __future__ import annotations

from typing import Literal

from langgraph.types import StateSnapshot

ThreadStatus = Literal["finished", "failed", "open"]
"""finished: nothing is left to do. failed: a node raised. open: running, killed, or not started yet."""


def is_absent(snapshot: StateSnapshot) -> bool:
    """True for a thread that has never been written."""
    return snapshot.created_at is None


def is_unasked(snapshot: StateSnapshot) -> bool:
    """True for a search thread that holds no question: never written, or killed before it had taken its question in.

    Between its first checkpoint and the next one the input of a run stands among the pending writes alone.
    """
    return is_absent(snapshot) or "query" not in snapshot.values


def is_finished(snapshot: StateSnapshot) -> bool:
    """True for a thread that has run to its end.

    ``snapshot.next`` does not tell: it leaves out tasks whose results are saved, so it is empty too where a run was
    killed between the last task of a step and the checkpoint after it.
    """
    return not is_absent(snapshot) and not snapshot.tasks


def errors_of(snapshot: StateSnapshot) -> list[str]:
    """What the nodes of the newest step raised, as text; a cancelled node (Ctrl-C) has not failed."""
    errors = [task.error for task in snapshot.tasks if task.error is not None]
    # A checkpoint store gives an exception back as text, in the notation of ``repr``.
    texts = [error if isinstance(error, str) else repr(error) for error in errors]
    return [text for text in texts if not text.startswith("CancelledError(")]


def status_of(snapshot: StateSnapshot) -> ThreadStatus:
    """finished: ran to its end. failed: a node raised. open: still running, killed or cancelled."""
    if is_finished(snapshot):
        return "finished"
    return "failed" if errors_of(snapshot) else "open"
