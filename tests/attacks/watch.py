"""What an attack may cost: how long the event loop is kept busy in one go, and how far memory grows."""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
import time
from collections.abc import Awaitable
from typing import TypeVar

from judgetree.modules.background_loop import background_loop
from tests.cpu_time import as_usual

T = TypeVar("T")

LONGEST_BLOCK_S = 0.3
MOST_MEMORY_MB = 300.0
_BEAT_S = 0.005


def peak_memory_mb() -> float:
    """The most memory that this process has had until now."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def survive(attack: Awaitable[T], *, limit_s: float) -> T:
    """Run an attack on judgetree's loop and give back its outcome.

    The loop's own CPU time between two beats is measured, not wall time, so that a busy machine fails nothing.

    Raises:
        AssertionError: It took longer than its limit, kept the loop busy, or took too much memory.
    """
    before_mb = peak_memory_mb()
    gc.disable()  # what other tests left behind is not this attack's to be collected
    try:
        outcome, longest_s = background_loop().run(_beside_a_heart(attack, limit_s))
    finally:
        gc.enable()
    longest_s = as_usual(longest_s)
    assert longest_s <= LONGEST_BLOCK_S, f"the loop was kept busy for {longest_s:.2f} s in one go"
    grown_mb = peak_memory_mb() - before_mb
    assert grown_mb <= MOST_MEMORY_MB, f"memory grew by {grown_mb:.0f} MB"
    return outcome


async def _beside_a_heart(attack: Awaitable[T], limit_s: float) -> tuple[T, float]:
    longest_s = 0.0

    async def beat() -> None:
        nonlocal longest_s
        while True:
            before_s = time.thread_time()
            await asyncio.sleep(_BEAT_S)
            longest_s = max(longest_s, time.thread_time() - before_s)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0)
    try:
        outcome = await asyncio.wait_for(attack, limit_s)
        await asyncio.sleep(2 * _BEAT_S)  # the beat that was due during the attack
        return outcome, longest_s
    finally:
        heart.cancel()
