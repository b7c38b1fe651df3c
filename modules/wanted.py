"""Work in a thread whose caller may leave: it is not interrupted, but begins nothing more that costs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from .errors import SessionError

T = TypeVar("T")
P = ParamSpec("P")

_LEFT: ContextVar[threading.Event | None] = ContextVar("left", default=None)


async def in_thread(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a call in a thread, as ``asyncio.to_thread`` does; cancelled, it lets ``check_wanted`` fail in that call."""
    left = threading.Event()
    before = _LEFT.set(left)
    try:
        return await asyncio.to_thread(call, *args, **kwargs)
    except asyncio.CancelledError:
        left.set()
        raise
    finally:
        _LEFT.reset(before)


def check_wanted() -> None:
    """Check that the caller of ``in_thread`` waits for this call, or that there is none.

    Raises:
        SessionError: The caller has left.
    """
    left = _LEFT.get()
    if left is not None and left.is_set():
        raise SessionError("Nobody waits for this search any more.")
