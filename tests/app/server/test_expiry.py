"""Old conversations are deleted in the background, by several workers at once and after a failure too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

from judgetree.app.server.application import create_app
from judgetree.app.server.serving.expiry import expire_daily
from judgetree.app.server.serving.options import ServerOptions
from judgetree.app.server.serving.served import Served
from judgetree.graphs.conversation.identity import new_conversation_id
from judgetree.graphs.conversation.turn.state import new_conversation
from judgetree.graphs.conversations import Conversations
from judgetree.modules.background_loop import background_loop
from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import Settings
from tests.app.conftest import COLLECTION

LONG_AGO = "2020-01-01T00:00:00+00:00"


@pytest.fixture
def talks(settings: Settings) -> Iterator[Conversations]:
    """Conversations of the server's store: ten old ones and a new one."""
    with Conversations(COLLECTION, settings=settings) as opened:
        store = background_loop().run(opened.services.open()).store
        for number in range(11):
            moment = LONG_AGO if number else datetime.now(UTC).isoformat()
            state = new_conversation(f"talk {number}", new_conversation_id("a"), moment)
            background_loop().run(store.begin(state))
        yield opened


async def until_one_is_left(talks: Conversations) -> None:
    async with asyncio.timeout(60):
        while [each.name for each in await talks.asummaries()] != ["talk 0"]:
            pass


def test_two_workers_clear_the_same_store(
    talks: Conversations, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve() -> None:
        async with AsyncExitStack() as running:
            for _ in range(2):
                app = create_app(settings, ServerOptions(expire_days=30))
                await running.enter_async_context(app.router.lifespan_context(app))
            await until_one_is_left(talks)

    asyncio.run(serve())
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_a_failed_pass_is_logged_and_followed_by_the_next(
    talks: Conversations, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    passes: list[str] = []

    def clock() -> datetime:
        passes.append("")
        if len(passes) == 1:
            raise SettingsError("the store is away")
        return datetime.now(UTC)

    async def serve() -> None:
        served = Served(settings, ServerOptions())
        task = asyncio.create_task(expire_daily(served, 30, every_s=0, clock=clock))
        await until_one_is_left(talks)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await served.close()

    asyncio.run(serve())
    assert "the store is away" in caplog.text
    assert len(passes) > 1


def test_a_clock_that_went_forward_is_believed_at_the_next_pass_only(
    talks: Conversations, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten conversations of long ago are seen from 2020, then from now, and from now again."""
    clocks = [datetime.fromisoformat(LONG_AGO), datetime.now(UTC), datetime.now(UTC)]
    seen: list[int] = []

    def clock() -> datetime:
        seen.append(len(background_loop().run(talks.asummaries())))
        return clocks.pop(0)

    async def serve() -> None:
        served = Served(settings, ServerOptions())
        task = asyncio.create_task(expire_daily(served, 30, every_s=0, clock=clock, monotonic=lambda: 0.0))
        await until_one_is_left(talks)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await served.close()

    asyncio.run(serve())
    assert seen[:3] == [11, 11, 11]
    assert "the clock went forward by" in caplog.text
