"""Questions of requests, whatever becomes of the connection on which their answers are sent."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Self

from judgetree.app.server.serving.asking import asked
from judgetree.app.server.serving.caller import LOCAL
from judgetree.app.server.serving.options import ServerOptions
from judgetree.app.server.serving.served import Served, ServedModel
from judgetree.graphs.conversation.turn.events import DoneEvent
from judgetree.modules.settings import Settings
from tests.app.conftest import COLLECTION
from tests.app.talks import FIRST


class Asker:
    """Asks the same question of the same conversation, again and again."""

    def __init__(self, settings: Settings) -> None:
        self._served = Served(settings, ServerOptions())
        self.turn_ids: list[str] = []

    async def __aenter__(self) -> Self:
        model = ServedModel(collection=COLLECTION, system="judge")
        self.conversation = (await self._served.conversations(model)).conversation("s")
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._served.close()

    async def ask(self, *, is_sent: bool = True, stays: bool = True) -> None:
        """Ask; the end of the answer may not be sent, or the client leaves as soon as it is."""
        async with aclosing(asked(self._served, LOCAL, self.conversation, FIRST)) as events:
            async for event in events:
                if not isinstance(event, DoneEvent):
                    continue
                self.turn_ids.append(event.result.turn_id)
                if not is_sent:
                    return
                if not stays:
                    next_one = asyncio.ensure_future(anext(events))
                    await asyncio.sleep(0)  # it has been asked for
                    next_one.cancel()
                    return


def test_an_answer_whose_end_was_not_sent_is_given_again(settings: Settings) -> None:
    async def ask() -> None:
        async with Asker(settings) as asker:
            await asker.ask(is_sent=False)
            await asker.ask()
            await asker.ask()
            lost, again, anew = asker.turn_ids
            assert lost == again != anew
            assert [turn["turn_id"] for turn in await asker.conversation.aturns()] == [lost, anew]

    asyncio.run(ask())


def test_clients_that_leave_with_the_end_of_an_answer_have_got_it(settings: Settings) -> None:
    async def ask() -> None:
        async with Asker(settings) as asker:
            for _ in range(5):
                await asker.ask(stays=False)
            assert len(set(asker.turn_ids)) == 5

    asyncio.run(ask())
