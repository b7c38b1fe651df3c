"""``GET /v1/trees/{thread}/events``: a search tree while it grows, as server-sent events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response
from sse_starlette import ServerSentEvent

from ....graphs.tree.documents import json_text
from ...stores.saved_trees import TreeThread
from ..serving.caller import Caller, CallerBy
from ..serving.errors import ApiError, as_api_error
from ..serving.served import Served, ServedBy
from ..serving.streams import EVENTS, described_events, event_stream, json_event
from .access import ThreadId, find_thread
from .forms import wanted_form
from .growth import Growth, StreamMark, growths

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent

router = APIRouter()

AG_UI = "text/vnd.ag-ui+event-stream"
_LONGEST_WAIT_S = 30.0
_WAIT_STEP_S = 0.2
_STREAM = {"content": described_events("snapshot", "delta", "end", "error", "message")}  # the last of AG-UI


@router.get(
    "/{thread:path}/events",
    response_model=None,
    responses={200: _STREAM, 204: {"description": "The client has everything, and the tree grows no more."}},
)
async def get_events(
    request: Request,
    thread: ThreadId,
    served: ServedBy,
    caller: CallerBy,
    wait: Annotated[
        float, Query(ge=0, le=_LONGEST_WAIT_S, description="Seconds in which the thread may still begin.")
    ] = 0.0,
    last_event_id: Annotated[str, Header(max_length=200, description="Id of the last event that was received.")] = "",
) -> Response:
    """Stream a tree while it grows, in any process: ``snapshot``, then ``delta``s, then ``end``.

    The data of a snapshot is the tree as JSON, that of a delta a JSON Patch (RFC 6902) to the tree before it. A client
    that comes back with the id of its last event gets a new snapshot only if it has missed something. ``end`` comes
    when the question is answered or has failed; the stream of one that nothing answers stays open.

    With ``Accept: text/vnd.ag-ui+event-stream`` the events are those of the AG-UI protocol.
    """
    head = await _awaited_thread(request, thread, served, caller, wait)
    if wanted_form(request.headers.get("Accept", "*/*"), (EVENTS, AG_UI)) == AG_UI:
        return event_stream(_agui_events(served, head, caller), heartbeat_s=served.options.heartbeat_s)
    known = StreamMark.of_header(last_event_id)
    if known is not None and known.is_end and await _is_unchanged(served, head, known):
        return Response(status_code=204)  # which ends the reconnecting of browsers
    return event_stream(_events(served, head, caller, known), heartbeat_s=served.options.heartbeat_s)


async def _awaited_thread(request: Request, thread_id: str, served: Served, caller: Caller, wait: float) -> TreeThread:
    """Return the head of a thread that the caller may see, once it exists.

    Raises:
        ApiError: HTTP 404: it does not exist in time, or is another caller's, which takes as long to say.
    """
    until = time.monotonic() + wait
    while True:
        try:
            return await find_thread(thread_id, served, caller)
        except ApiError:
            if time.monotonic() >= until or await request.is_disconnected():
                raise
        await asyncio.sleep(_WAIT_STEP_S)


async def _is_unchanged(served: Served, thread: TreeThread, known: StreamMark) -> bool:
    async with aclosing(growths(served.trees.watch(thread))) as states:
        first = await anext(states)
    return first.mark.digest == known.digest and first.root.status != "open"


async def _agui_events(served: Served, thread: TreeThread, caller: Caller) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a tree in the AG-UI protocol, which knows no coming back; an error is the last one."""
    from .agui import AgUiRun, document_of, failed  # its models take 0.3 s to build

    def sent(event: BaseEvent) -> ServerSentEvent:
        return json_event(json_text(document_of(event)))

    run, last = AgUiRun(thread), None
    states = growths(caller.validity.limited(served.trees.watch(thread)))
    try:
        async with aclosing(states):
            async for last in states:
                for event in run.events(last):
                    yield sent(event)
        if last is not None:
            for event in run.end(last.root):
                yield sent(event)
    except Exception as error:  # noqa: BLE001 - the headers are sent: any error has to be an event
        yield sent(failed(as_api_error(error).body.message))


async def _events(
    served: Served, thread: TreeThread, caller: Caller, known: StreamMark | None
) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a tree; an error is the last one."""
    states, last = growths(caller.validity.limited(served.trees.watch(thread)), known), None
    try:
        async with aclosing(states):
            async for last in states:
                if last.changes != []:
                    yield _event_of(last)
        if last is not None:
            said = {"status": last.root.status, "answer_status": last.root.answer_status, "answer": last.root.answer}
            yield _sent("end", said, replace(last.mark, is_end=True))
    except Exception as error:  # noqa: BLE001 - the headers are sent: any error has to be an event
        yield json_event(json_text({"error": as_api_error(error).body.model_dump()}), kind="error")


def _event_of(state: Growth) -> ServerSentEvent:
    if state.changes is None:
        return _sent("snapshot", state.document, state.mark)
    return _sent("delta", state.changes, state.mark)


def _sent(kind: str, data: object, mark: StreamMark) -> ServerSentEvent:
    return json_event(json_text(data), kind=kind, mark=str(mark))
