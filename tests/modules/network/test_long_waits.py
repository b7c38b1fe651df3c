"""Long waits end at once, in every loop, and none begins after the end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from judgetree.modules.errors import SessionError
from judgetree.modules.network.long_waits import LongWaits

PATIENCE_S = 30.0


def test_waits_in_other_threads_end_at_once_and_none_begins() -> None:
    waits, begun, ended = LongWaits(), threading.Barrier(4), []

    async def wait() -> None:
        async with waits.one():
            await asyncio.to_thread(begun.wait, PATIENCE_S)
            await asyncio.sleep(10 * PATIENCE_S)

    def run() -> None:
        with pytest.raises(SessionError, match="ask the same question again"):
            asyncio.run(asyncio.wait_for(wait(), PATIENCE_S))
        ended.append(True)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for each in threads:
        each.start()
    begun.wait(PATIENCE_S)
    waits.end()
    for each in threads:
        each.join(PATIENCE_S)
    assert ended == [True] * 3
    with pytest.raises(SessionError):
        asyncio.run(wait())


def test_what_ends_by_itself_is_left_alone() -> None:
    waits = LongWaits()

    async def both() -> str:
        async with waits.one():
            await asyncio.sleep(0)
        waits.end()
        await asyncio.sleep(0.01)
        return "done"

    assert asyncio.run(both()) == "done"

    async def fails() -> None:
        async with LongWaits().one():
            raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        asyncio.run(fails())
