"""Asks the question of a request: admitted, paid for, and cancelled with everything that it holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Final, Generic, Self, TypeVar, cast

from ....graphs.conversation.conversation import Conversation
from ....graphs.conversation.delivery import Delivery
from ....graphs.conversation.turn.events import ConversationEvent, DoneEvent, SessionEvent
from ....modules.memory.messages import GivenHistory
from .admission import Admission
from .caller import LOCAL, Caller
from .errors import ApiError
from .options import ServerOptions
from .served import Served
from .validity import Validity

T = TypeVar("T")


def check_question(question: str, options: ServerOptions, *, param: str) -> None:
    """Check the length of a question; every door that takes one calls this.

    Raises:
        ApiError: HTTP 400.
    """
    if len(question) > options.max_question_chars:
        raise ApiError(400, f"The question is longer than {options.max_question_chars} characters.", param=param)


def asked(  # noqa: PLR0913 - the last five have defaults
    served: Served,
    caller: Caller,
    conversation: Conversation,
    question: str,
    *,
    parent_turn_id: str | None = None,
    request_id: str = "",
    regenerate: bool = False,
    chat_history: GivenHistory = (),
    keys: Mapping[str, object] | None = None,
) -> DetachedTask[ConversationEvent]:
    """Return the events of a question, which is asked once they are awaited; closing them cancels the turn.

    It keeps to the limits of the caller's key, holds a place among the questions of the server, and is charged to the
    key, however it ends. Its end has arrived once the next event is wanted: until then, also after a crash of this
    process, the same question gets the same turn.

    Raises:
        ApiError: (At the first event) HTTP 429: no place is free, or the key's budget is spent. (At any) HTTP 401:
            the key was revoked meanwhile.
    """
    usual, delivery = served.limits_of(LOCAL), Delivery()
    of_caller = {name: value for name, value in served.limits_of(caller) if value != getattr(usual, name)}
    events = conversation.astream(
        question,
        parent_turn_id=parent_turn_id,
        request_id=request_id,
        regenerate=regenerate,
        chat_history=chat_history,
        delivery=delivery,
        **{**of_caller, **(keys or {})},
    )

    def sent(event: ConversationEvent) -> None:
        if isinstance(event, DoneEvent):
            delivery.confirm()

    return DetachedTask(_events(served, caller, conversation, events), sent, caller.validity)


async def _events(
    served: Served, caller: Caller, conversation: Conversation, stream: AsyncIterator[ConversationEvent]
) -> AsyncGenerator[ConversationEvent]:
    async with served.admissions.admitted(caller) as admission:
        is_open = False
        try:
            async with aclosing(cast(AsyncGenerator[ConversationEvent], stream)) as events:
                async for event in events:
                    if isinstance(event, SessionEvent):
                        is_open = True
                        await admission.name_turn(event.turn_id, conversation.name)
                    elif isinstance(event, DoneEvent):
                        admission.calls, is_open = event.result.calls, False
                    yield event
        finally:
            if is_open and not caller.per_day.is_empty:
                await _charge_open_turn(conversation, admission)


async def _charge_open_turn(conversation: Conversation, admission: Admission) -> None:
    """Charge what a turn that was cancelled has used so far."""
    turn_id, calls = await conversation.aopen_calls()
    if turn_id == admission.turn_id:
        admission.calls = calls


class _End:
    """The end of the items."""


_END: Final = _End()


class DetachedTask(Generic[T]):
    """Iterates an asynchronous generator in a task of its own, which nothing but ``aclose`` cancels.

    What the generator does at its end is then done once and in full, while the scopes of a request that was cancelled
    cancel every further await of its own task.
    """

    def __init__(
        self,
        items: AsyncGenerator[T],
        used: Callable[[T], None] = lambda _: None,
        validity: Validity | None = None,
    ) -> None:
        """Call ``used`` with each item whose successor is wanted; no more are given once the ``validity`` has ended."""
        self._items = items
        self._used = used
        self._validity = validity or Validity()
        self._last: T | _End = _END
        self._received: asyncio.Queue[T | _End] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="question")
            _RUNNING.add(self._task)
            self._task.add_done_callback(_forget)
        if not isinstance(self._last, _End):
            self._used(self._last)
        async with self._validity.required():
            item = await self._received.get()
        self._last = item
        if isinstance(item, _End):
            self._received.put_nowait(item)
            await self._task
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Cancel the task, and wait for its end."""
        if self._task is None:
            await self._items.aclose()
            return
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            async with aclosing(self._items) as items:
                async for item in items:
                    self._received.put_nowait(item)
        finally:
            self._received.put_nowait(_END)


def _forget(task: asyncio.Task[None]) -> None:
    _RUNNING.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log what a client that left will not hear


_RUNNING: set[asyncio.Task[None]] = set()
"""Tasks that run: asyncio itself keeps no reference to them."""
