"""How all savers name a checkpoint, and which values they put into the checkpoint itself."""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig


def config_of(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}


def is_inline(value: object, *, max_chars: int | None = None) -> bool:
    """Return whether a channel's value is stored in the checkpoint: a number, None, or a text that is not too long.

    Args:
        value: Value of a channel.
        max_chars: Most characters of a text; None for texts of any length.
    """
    if isinstance(value, str):
        return max_chars is None or len(value) <= max_chars
    return value is None or isinstance(value, int | float | bool)
