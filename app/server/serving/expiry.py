"""Deletes old conversations once a day."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from ....graphs.conversation.expiry import now_utc
from .served import Served

logger = logging.getLogger(__name__)

DAY_S = 24 * 60 * 60.0
LONGEST_LEAP_S = 60 * 60.0
"""A clock that went forward by more than the time that passed and this is not believed at once."""


@asynccontextmanager
async def expiring(served: Served) -> AsyncIterator[None]:
    """Delete old conversations in the background inside; without ``expire_days`` nothing is deleted."""
    if served.options.expire_days is None:
        yield
        return
    task = asyncio.create_task(expire_daily(served, served.options.expire_days), name="expiry")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def expire_daily(
    served: Served,
    days: int,
    *,
    every_s: float = DAY_S,
    clock: Callable[[], datetime] = now_utc,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Delete conversations without a turn for ``days`` days, now and after each ``every_s`` seconds.

    A failure is logged, and the next pass deletes the rest. Several workers may do it at once: a conversation is
    deleted under its lock, and one that is answering is left alone. If the clock went forward since the pass before by
    more than the time that passed, it may be set back again: nothing is deleted until the next pass.
    """
    before: tuple[datetime, float] | None = None
    while True:
        try:
            now = clock(), monotonic()
            leapt_s = 0.0 if before is None else (now[0] - before[0]).total_seconds() - (now[1] - before[1])
            before = now
            if leapt_s > LONGEST_LEAP_S:
                logger.warning("the clock went forward by %.0f s: conversations expire in %g s", leapt_s, every_s)
            else:
                await _expire(served, days, now[0])
        except Exception:
            logger.exception("conversations were not expired; the next attempt is in %g s", every_s)
        await asyncio.sleep(every_s)


async def _expire(served: Served, days: int, now: datetime) -> None:
    conversations = await served.any_conversations()
    report = await conversations.adelete_old_conversations(days, clock=lambda: now)
    logger.info("%d conversations expired, %d were busy", len(report.conversations), len(report.busy))
