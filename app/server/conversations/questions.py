"""``POST /v1/conversations/{name}/questions``: one question, answered as a stream of the conversation's events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field
from sse_starlette import ServerSentEvent

from ....graphs.conversation.turn.events import (
    ConversationEvent,
    DoneEvent,
    ErrorEvent,
    SessionEvent,
    event_document,
)
from ....graphs.conversation.turn.result import TurnResult
from ....modules.calls.prices import Prices
from ....modules.errors import NoRunningQuestion
from ....modules.storage.texts import MAX_ID_BYTES
from ..serving.asking import asked, check_question
from ..serving.caller import Caller, CallerBy
from ..serving.errors import as_api_error, failure_words
from ..serving.request_keys import QuestionKeys
from ..serving.running import identity_of
from ..serving.segment_route import SegmentRoute
from ..serving.served import ServedBy
from ..serving.streams import EventStream, described_events, json_event, question_stream
from ..serving.turns import TurnEvents
from .documents import Turn
from .paths import Name

router = APIRouter(prefix="/v1/conversations", tags=["conversations"], route_class=SegmentRoute)

Json = dict[str, object]
_GRACE_S = 30.0
"""Seconds for which a question runs on without a client: a page is loaded again, a phone finds its network."""
_STREAM: dict[str, object] = {
    "content": described_events("session", "thinking", "content", "source", "tree", "error", "done"),
    "description": "Server-sent events with JSON data.",
}


class QuestionRequest(QuestionKeys):
    """A question to a conversation."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"model": "standards/judge", "question": "Which gasket seals a Rating F40 flange?"}
        },
    )

    model: str = Field(max_length=2_100)
    """``COLLECTION/SYSTEM``, as ``GET /v1/models`` lists them."""
    question: str = Field(min_length=1, max_length=10_000_000)
    parent_turn_id: str | None = Field(default=None, max_length=MAX_ID_BYTES)
    """Turn that it follows; null for the newest of the active branch, empty to start without history."""
    regenerate: bool = False
    """Start a new turn even if the same question is open or was answered."""
    request_id: str = Field(default="", max_length=MAX_ID_BYTES)
    """The client's id of the request: a repeated one gets the same turn."""


@router.post(
    "/{name}/questions",
    status_code=200,
    response_class=Response,  # whose errors are JSON
    response_model=None,
    responses={200: _STREAM},
)
async def ask(request: Request, name: Name, body: QuestionRequest, served: ServedBy, caller: CallerBy) -> EventStream:
    """Answer a question as a turn of a conversation, a new one if none has the name.

    The last event is ``done``, whose ``turn`` is null if the model failed, or ``error``. If the client leaves, the turn
    runs on for the seconds of ``--grace``, in which the same request and ``GET`` get all its events; then it is
    cancelled and stays open. The same question resumes it, and repeats no call that was paid for. What is wrong from
    the start has an HTTP status.
    """
    check_question(body.question, served.options, param="question")
    keys = body.keys(served.limits_of(caller))
    model = await served.find_model(caller, body.model)
    conversation = (await served.conversations(model)).conversation(caller.stored_name(name))
    events = asked(
        served,
        caller,
        conversation,
        body.question,
        parent_turn_id=body.parent_turn_id,
        request_id=body.request_id,
        regenerate=body.regenerate,
        keys=keys,
        identity=identity_of(caller, "questions", name, body.model_dump()),
        grace_s=served.options.grace_of(_GRACE_S),
    )
    started = await TurnEvents.begin(request, events)
    return question_stream(_sent(started, caller, served.prices), started, served.options)


@router.get("/{name}/questions", response_class=Response, response_model=None, responses={200: _STREAM})
async def watch(request: Request, name: Name, served: ServedBy, caller: CallerBy) -> EventStream:
    """Watch the question that the conversation is answering: its events from the first, as its own request gets them.

    HTTP 409 says that no question runs, or that it runs in another process of the server.
    """
    conversation = await served.conversation(caller, name)
    running = served.running.of_conversation(conversation.name)
    if running is None:
        raise NoRunningQuestion(f"The conversation {name!r} answers no question in this process of the server.")
    started = await TurnEvents.begin(request, running.watch(caller.validity))
    return question_stream(_sent(started, caller, served.prices), started, served.options)


@router.post("/{name}/questions/stop", status_code=204, response_class=Response)
async def stop(name: Name, served: ServedBy, caller: CallerBy) -> None:
    """End the search of the question that the conversation is answering; its stream continues with the answer.

    What is found so far is answered from, and ``stopped`` of ``done`` is true. HTTP 409 says that no question runs, or
    that it runs in another process of the server, which alone can stop it.
    """
    await (await served.conversation(caller, name)).astop()


async def _sent(events: TurnEvents, caller: Caller, prices: Prices) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a turn; an error that is not among them is the last."""
    failed: list[ErrorEvent] = []  # whose words are those of an error that follows
    async with aclosing(events):
        try:
            async for event in events:
                if isinstance(event, ErrorEvent):
                    failed.append(event)
                    continue
                for each in (*failed, event):
                    yield _event(each.type, document_of(each, caller, prices))
                failed.clear()
        except Exception as error:  # noqa: BLE001 - the headers are sent: any error has to be an event
            yield _event("error", {"type": "error", "message": as_api_error(error).body.message})


def document_of(event: ConversationEvent, caller: Caller, prices: Prices) -> Json:
    """Return an event as its owner sees it: a ``done`` names the search tree and does not hold it."""
    match event:
        case DoneEvent():
            return {"type": event.type, **_done(event.result, caller, prices)}
        case SessionEvent():
            return {**event_document(event), "name": caller.shown_name(event.name)}
        case ErrorEvent():
            return {"type": event.type, "message": failure_words(event.message)}
    return event_document(event)


def _done(result: TurnResult, caller: Caller, prices: Prices) -> Json:
    turn = result.turn
    return {
        "name": caller.shown_name(result.name),
        "turn_id": result.turn_id,
        "branch": result.branch,
        "status": result.status,
        "answer": result.answer,
        "error": failure_words(result.error),
        "resumed": result.resumed,
        "stopped": result.tree is not None and "stopped" in result.tree.spent_limits,
        "wall_s": round(result.wall_s, 3),
        "rag_thread_id": result.tree.root.thread_id if result.tree else "",
        "usage": result.usage,
        "turn": Turn.of(turn, {turn["branch_id"]: result.branch}, prices).model_dump() if turn else None,
    }


def _event(kind: str, document: Json) -> ServerSentEvent:
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return json_event(data, kind=kind)


def _plain(value: Any) -> str:
    """Return what JSON has no form for as text, such as metadata of a user's own collection."""
    return str(value)
