"""The end of asynchronous iterators that are left early."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close an iterator in the end, whatever ends its loop: an error, a cancellation or an early return.

    What it holds, such as a connection, else stays open until it is collected as garbage: at any time, on any thread,
    and not in the order in which one iterator reads out of the other.

    Args:
        items: The iterator; one that is no generator has nothing to close.
    """
    try:
        yield items
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()
