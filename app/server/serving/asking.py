"""Asks the question of a request: admitted, paid for, and cancelled with everything that it holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import cast

from ....graphs.conversation.conversation import Conversation
from ....graphs.conversation.delivery import Delivery
from ....graphs.conversation.turn.events import ConversationEvent, DoneEvent, SessionEvent
from ....modules.memory.messages import GivenHistory
from .admission import Admission
from .caller import LOCAL, Caller
from .errors import ApiError
from .options import ServerOptions
from .running import QuestionEvents, RunningQuestion
from .served import Served


def check_question(question: str, options: ServerOptions, *, param: str) -> None:
    """Check the length of a question; every door that takes one calls this.

    Raises:
        ApiError: HTTP 400.
    """
    if len(question) > options.max_question_chars:
        raise ApiError(400, f"The question is longer than {options.max_question_chars} characters.", param=param)


def asked(  # noqa: PLR0913 - the last seven have defaults
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
    identity: str = "",
    grace_s: float = 0.0,
) -> QuestionEvents:
    """Return the events of a question, which is asked once they are awaited.

    If a question of the same ``identity`` runs, they are its events, from the first, and nothing is asked. Once the
    events of all its requests are closed the turn is cancelled, after ``grace_s`` seconds in which another may come.

    The question keeps to the limits of the caller's key, holds a place among the questions of the server, and is
    charged to the key, however it ends. Its end has arrived once the next event is wanted: until then, also after a
    crash of this process, the same question gets the same turn.

    Raises:
        ApiError: (At the first event) HTTP 429: no place is free, or the key's budget is spent. (At any) HTTP 401:
            the key was revoked meanwhile.
    """
    running = served.running.find(identity) if identity else None
    if running is not None:
        return running.watch(caller.validity)
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

    async def may_go_on() -> bool:
        return caller.is_local or await served.keys.is_valid(caller.key_id)

    running = RunningQuestion(
        _events(served, caller, conversation, events),
        name=conversation.name,
        identity=identity,
        delivery=delivery,
        grace_s=grace_s,
        may_go_on=may_go_on,
        forget=served.running.forget,
    )
    served.running.add(running)
    return running.watch(caller.validity)


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
