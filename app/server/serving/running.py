"""Questions that run in this process: each in a task of its own, watched by any number of requests."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Self

from ....graphs.conversation.delivery import Delivery
from ....graphs.conversation.turn.events import ConversationEvent, DoneEvent
from ....modules.digests import text_digest
from ....modules.errors import SettingsError
from .caller import Caller
from .validity import Validity

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0


def identity_of(caller: Caller, *parts: object) -> str:
    """Return a digest of all that makes two requests of one caller the same question, as plain data."""
    return text_digest(json.dumps([caller.key_id, *parts])).hex()


class RunningQuestion:
    """A question that runs in a task of its own, which nothing cancels but the loss of its last watcher.

    What its events' generator does at its end is done once and in full, while the scopes of a request that was
    cancelled cancel every further await of its own task.
    """

    def __init__(
        self,
        events: AsyncGenerator[ConversationEvent],
        *,
        name: str,
        identity: str,
        delivery: Delivery,
        grace_s: float,
        may_go_on: Callable[[], Awaitable[bool]],
        forget: Callable[[RunningQuestion], None],
    ) -> None:
        """Run once the first event is awaited.

        Args:
            events: What is run.
            name: Stored name of the conversation.
            identity: Digest of the question (``identity_of``).
            delivery: Confirmed once a watcher has the answer.
            grace_s: Seconds that the question runs on without a watcher.
            may_go_on: Whether its caller may still ask; called each second without a watcher.
            forget: Called once, when no further request may watch.
        """
        self.name = name
        self.identity = identity
        self._events = events
        self._delivery = delivery
        self._grace_s = grace_s
        self._may_go_on = may_go_on
        self._forget = forget
        self._so_far: list[ConversationEvent] = []
        self._watchers: set[QuestionEvents] = set()
        self._task: asyncio.Task[None] | None = None
        self._grace: asyncio.Task[None] | None = None

    def watch(self, validity: Validity) -> QuestionEvents:
        """Return all its events, from the first, while the validity lasts."""
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        watcher = QuestionEvents(self, self._so_far, validity)
        self._watchers.add(watcher)
        return watcher

    def start(self) -> asyncio.Task[None]:
        """Return the task that runs it."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="question")
            self._task.add_done_callback(_ended)
        return self._task

    def confirm(self) -> None:
        """Say that a watcher has the answer, so that the same question is another one from now on."""
        self._delivery.confirm()
        self._forget(self)

    async def leave(self, watcher: QuestionEvents, *, at_once: bool) -> None:
        """Take a watcher away; without any the question is cancelled, ``at_once`` or after its grace."""
        self._watchers.discard(watcher)
        if self._watchers or self._grace is not None:
            return
        if self._task is None:
            self._forget(self)
            await self._events.aclose()
        elif at_once or self._grace_s <= 0 or self._has_answer or self._task.done():
            await self.cancel()
        else:
            self._grace = asyncio.create_task(self._cancel_later(), name="grace of a question")

    async def cancel(self) -> None:
        """Cancel it, and wait for its end."""
        self._forget(self)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def _has_answer(self) -> bool:
        return bool(self._so_far) and isinstance(self._so_far[-1], DoneEvent)

    async def _cancel_later(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._grace_s
        while (left := end - loop.time()) > 0:
            await asyncio.sleep(min(left, _LOOK_EVERY_S))
            try:
                if not await self._may_go_on():
                    break
            except SettingsError as error:  # as for watched questions
                logger.warning("It was not seen whether keys were revoked: %s", error)
        await self.cancel()

    async def _run(self) -> None:
        try:
            async with aclosing(self._events) as events:
                async for event in events:
                    self._so_far.append(event)
                    for watcher in self._watchers:
                        watcher.put(event)
                    if isinstance(event, DoneEvent) and not self._watchers:
                        self._delivery.give_up()  # the conversation need not wait
        finally:
            self._forget(self)
            if self._grace is not None:
                self._grace.cancel()
            for watcher in self._watchers:
                watcher.put(None)


class QuestionEvents:
    """The events of a running question, as one request watches them."""

    def __init__(self, question: RunningQuestion, so_far: list[ConversationEvent], validity: Validity) -> None:
        self._question = question
        self._validity = validity
        self._last: ConversationEvent | None = None
        self._received: asyncio.Queue[ConversationEvent | None] = asyncio.Queue()
        for event in so_far:
            self._received.put_nowait(event)

    @property
    def name(self) -> str:
        """Stored name of the conversation that answers."""
        return self._question.name

    def put(self, event: ConversationEvent | None) -> None:
        """Add an event, or the end."""
        self._received.put_nowait(event)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConversationEvent:
        if isinstance(self._last, DoneEvent):
            self._question.confirm()
        task = self._question.start()
        async with self._validity.required():
            self._last = await self._received.get()
        if self._last is None:
            self.put(None)
            await asyncio.wait([task])
            task.result()  # raises what ended it
            raise StopAsyncIteration
        return self._last

    async def aclose(self) -> None:
        """Watch no longer."""
        await self._question.leave(self, at_once=self._validity.has_ended)


class RunningQuestions:
    """The questions that a server's process answers, which further requests may watch."""

    def __init__(self) -> None:
        self._running: list[RunningQuestion] = []

    def find(self, identity: str) -> RunningQuestion | None:
        """Return the running question of an identity."""
        return next((each for each in self._running if each.identity == identity), None)

    def of_conversation(self, name: str) -> RunningQuestion | None:
        """Return the question that a conversation answers, or answers next, by its stored name."""
        return next((each for each in self._running if each.name == name), None)

    def add(self, question: RunningQuestion) -> None:
        """Let further requests find a question."""
        self._running.append(question)

    def forget(self, question: RunningQuestion) -> None:
        """Let no further request find a question."""
        if question in self._running:
            self._running.remove(question)

    async def aclose(self) -> None:
        """Cancel all."""
        for each in list(self._running):
            await each.cancel()


def _ended(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log what a client that left will not hear
