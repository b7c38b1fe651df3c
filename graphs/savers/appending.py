"""Compare-and-swap for threads whose checkpoints follow each other, such as those of conversations."""

from __future__ import annotations

from typing import cast

from langchain_core.runnables import RunnableConfig

from ...modules.errors import ThreadMoved

_FOLLOWS = "__judgetree_follows"
"""Key in a config; LangGraph leaves keys that begin with two underscores out of the saved metadata."""


def following(config: RunnableConfig, newest: str) -> RunnableConfig:
    """Return a config with which a checkpoint is saved only while ``newest`` is the newest of its thread.

    Args:
        config: Names the thread.
        newest: Id of a checkpoint; ``""`` for a thread without any.
    """
    return {**config, "configurable": {**config["configurable"], _FOLLOWS: newest}}


def expected_newest(config: RunnableConfig) -> str | None:
    """Return the ``newest`` that ``following`` put into a config; None if the checkpoint is saved in any case."""
    return cast("str | None", config["configurable"].get(_FOLLOWS))


def moved(config: RunnableConfig, newest: str | None) -> ThreadMoved:
    """Return the error of a save that had to follow another checkpoint than ``newest``; None stands for none."""
    thread_id, expected = config["configurable"]["thread_id"], expected_newest(config)
    return ThreadMoved(
        f"The thread {thread_id!r} was written meanwhile: its newest checkpoint is {newest or 'deleted'}, not "
        f"{expected or 'missing'}. Read it again, then save."
    )
