"""Deletes old conversations once a day."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from ....graphs.conversation.expiry import now_utc
from .served import Served

logger = logging.getLogger(__name__)

DAY_S = 24 * 60 * 60.0


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
    served: Served, days: int, *, every_s: float = DAY_S, clock: Callable[[], datetime] = now_utc
) -> None:
    """Delete conversations without a turn for ``days`` days, now and after each ``every_s`` seconds.

    A failure is logged, and the next pass deletes the rest. Several workers may do it at once: a conversation is
    deleted under its lock, and one that is answering is left alone.
    """
    while True:
        try:
            conversations = await served.any_conversations()
            report = await conversations.adelete_old_conversations(days, clock=clock)
            logger.info("%d conversations expired, %d were busy", len(report.conversations), len(report.busy))
        except Exception:
            logger.exception("conversations were not expired; the next attempt is in %g s", every_s)
        await asyncio.sleep(every_s)
