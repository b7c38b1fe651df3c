"""Savers of LangGraph that a caller gives: as objects, or as functions that make them on judgetree's own loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from ...modules.errors import SettingsError
from ..savers.threaded_saver import ThreadedSaver
from ..stores.contract import Saver
from ..stores.registry import ALLOWED_URLS

SaverFactory = Callable[[], AbstractAsyncContextManager[Saver] | AbstractContextManager[Saver] | Saver]
"""Makes a saver; what it opens is closed with the graph."""
Checkpointer = str | Saver | SaverFactory
"""A URL, a saver that is bound to no event loop, or a factory."""


def check_checkpointer(given: object) -> None:
    """Check what can be checked before a saver is opened.

    Raises:
        SettingsError: It is no checkpointer, or a saver that is bound to another event loop.
    """
    if isinstance(given, BaseCheckpointSaver):
        if hasattr(given, "loop") or not _is_synchronous(given):
            raise _bound(given)
    elif isinstance(given, AbstractContextManager | AbstractAsyncContextManager):
        raise SettingsError(
            f"The checkpointer {given!r:.100} is not opened yet. Give the call that makes it as a function: "
            'checkpointer=lambda: SqliteSaver.from_conn_string("trees.sqlite").'
        )
    elif given is not None and not isinstance(given, str) and not callable(given):
        raise _unknown(given)


@asynccontextmanager
async def open_given(given: Saver | SaverFactory) -> AsyncIterator[Saver]:
    """Open a saver for async graphs on the running event loop; closes what a factory opened, and no object.

    Raises:
        SettingsError: It is no saver, is bound to another loop, or cannot be used from another thread.
    """
    async with AsyncExitStack() as stack:
        saver: object = given
        if not isinstance(given, BaseCheckpointSaver):
            saver = made = given()
            if isinstance(made, AbstractAsyncContextManager):
                saver = await stack.enter_async_context(made)
            elif isinstance(made, AbstractContextManager):
                saver = stack.enter_context(made)
        if not isinstance(saver, BaseCheckpointSaver):
            raise _unknown(saver)
        if getattr(saver, "loop", None) not in (None, asyncio.get_running_loop()):
            raise _bound(saver)
        if isinstance(saver, InMemorySaver) or hasattr(saver, "loop") or not _is_synchronous(saver):
            yield saver
            return
        threaded = ThreadedSaver(saver)
        stack.callback(threaded.end_thread)
        await _try_out(threaded)
        yield threaded


async def _try_out(saver: ThreadedSaver) -> None:
    try:
        await saver.aget_tuple({"configurable": {"thread_id": "", "checkpoint_ns": ""}})
    except Exception as error:
        name = type(saver.inner).__name__
        raise SettingsError(
            f"The checkpointer {name} cannot be used: {type(error).__name__}: {error} It is called from a thread of "
            "its own: a sqlite3 connection needs check_same_thread=False. A PostgresSaver needs setup() once."
        ) from error


def _is_synchronous(saver: Saver) -> bool:
    return type(saver).get_tuple is not BaseCheckpointSaver.get_tuple


def _bound(saver: object) -> SettingsError:
    name = type(saver).__name__
    return SettingsError(
        f"The checkpointer {name} is bound to the event loop that it was made on, and graphs run on judgetree's own. "
        f"Give a function that makes it there: checkpointer=lambda: {name}.from_conn_string(…)."
    )


def _unknown(given: object) -> SettingsError:
    return SettingsError(
        f"The checkpointer is {given!r:.100}. Give a URL ({ALLOWED_URLS}), a saver of LangGraph, or a function that "
        "makes one."
    )
