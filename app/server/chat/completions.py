"""``POST /v1/chat/completions``: one question of a conversation, whole or as a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from sse_starlette import ServerSentEvent

from ....graphs.conversation.turn.events import DoneEvent, ErrorEvent, SourceEvent, ThinkingEvent
from ....graphs.conversation.turn.result import TurnResult
from ..serving.asking import asked, check_question
from ..serving.caller import Caller, CallerBy
from ..serving.errors import NO_RETRY, ApiError, as_api_error, failure_words
from ..serving.running import QuestionEvents, identity_of
from ..serving.served import FAST, Served, ServedBy
from ..serving.streams import json_event, question_stream, while_connected
from ..serving.turns import TurnEvents
from ..serving.unnamed import new_name
from .answers import ANSWERS
from .chunks import GrowingCompletion, data_of
from .fast import answer_fast
from .history import ConversationPlace, place_of
from .parameters import IGNORED, ignored_parameters, named_in_header
from .requests import ChatRequest
from .sources import AnswerLinks, Json
from .tasks import is_task_prompt

router = APIRouter(prefix="/v1", tags=["chat"])

_CHAT_HEADERS = ("X-OpenWebUI-Chat-Id", "X-Chat-Id")
_HOW_IT_IS_SENT = {"stream", "stream_options"}
_END = ServerSentEvent(data="[DONE]", sep="\n")


@dataclass(frozen=True, kw_only=True)
class _Question:
    """A question, the conversation that it belongs to, and its place there."""

    body: ChatRequest
    events: QuestionEvents
    completion: GrowingCompletion


@router.post("/chat/completions", response_model=None, responses=ANSWERS)
async def chat_completions(request: Request, body: ChatRequest, served: ServedBy, caller: CallerBy) -> Response:
    """Answer the last message, as a turn of the conversation that the request names.

    The conversation is named by the header ``X-OpenWebUI-Chat-Id`` or ``X-Chat-Id``, by ``metadata.chat_id``,
    ``chat_id`` or ``thread_id``. Without any, the messages are the history. An edited or repeated message starts a
    branch. A request with the ``Idempotency-Key`` of an earlier one gets its turn. Prompts for titles, tags and
    follow-ups of a chat, as Open WebUI and LibreChat send them, are answered by ``fast``, outside the conversation.
    """
    ignored = ignored_parameters(body.model_extra or {}, lenient=served.options.lenient)
    body.check_is_text()
    check_question(body.question, served.options, param="messages")
    answer = answer_fast if body.model == FAST or is_task_prompt(body.messages) else _answer
    response = await answer(request, body, served, caller)
    if ignored:
        response.headers[IGNORED] = named_in_header(ignored)
    return response


async def _answer(request: Request, body: ChatRequest, served: Served, caller: Caller) -> Response:
    question = await _question(request, body, served, caller)
    if not body.stream:
        completed, headers = await while_connected(request, _whole(question))
        return JSONResponse(completed, headers=headers)
    events = await TurnEvents.begin(request, question.events)  # what is wrong from the start has an HTTP status
    answer = question_stream(_stream(question, events), events, served.options)
    answer.headers.update(_thread_header(events.search_thread))
    return answer


async def _question(request: Request, body: ChatRequest, served: Served, caller: Caller) -> _Question:
    model = await served.find_model(caller, body.model)
    request_id = request.headers.get("Idempotency-Key", "")
    named = _conversation_of(request, body)
    name = named or new_name(request_id, model.id)
    conversations = await served.conversations(model)
    conversation = conversations.conversation(caller.stored_name(name))
    parent: str | None = None
    place: ConversationPlace | None = None
    if not (body.thread_id and len(body.messages) == 1):
        place = place_of(body.messages, await conversation.aturns() if named else ())
        parent = place.parent_turn_id
    events = asked(
        served,
        caller,
        conversation,
        body.question,
        parent_turn_id=parent,
        request_id=request_id,
        regenerate=bool(place and place.is_repeated and not request_id),
        chat_history=place.foreign_history if place else (),
        keys=body.judgetree.keys(served.limits_of(caller)) | body.answer_keys(),
        identity=identity_of(caller, "chat", named, request_id, body.model_dump(exclude=_HOW_IT_IS_SENT)),
        grace_s=served.options.grace_of(),
    )
    completion = GrowingCompletion(
        model=model.id,
        conversation=caller.shown_name(events.name) or name,
        links=AnswerLinks.of(request, caller),
        prices=served.prices,
        is_json=body.json_format is not None,
        sources_form=body.judgetree.sources or served.options.sources,
        is_open_webui=_is_open_webui(request),
    )
    return _Question(body=body, events=events, completion=completion)


def _is_open_webui(request: Request) -> bool:
    """Return whether Open WebUI sends a request; unless it forwards who asks, only its HTTP client shows that."""
    agent = request.headers.get("User-Agent", "")
    return _CHAT_HEADERS[0] in request.headers or (agent.startswith("Python/") and " aiohttp/" in agent)


def _thread_header(thread_id: str) -> dict[str, str]:
    return {"X-Judgetree-Thread": thread_id} if thread_id else {}


def _conversation_of(request: Request, body: ChatRequest) -> str:
    """Return the conversation's name; ``""`` if the request names none."""
    named = [request.headers.get(header) for header in _CHAT_HEADERS]
    named += [body.metadata.chat_id if body.metadata else None, body.chat_id, body.thread_id]
    return next((name for name in named if name), "")


async def _whole(question: _Question) -> tuple[Json, dict[str, str]]:
    """Return the whole completion, and its headers.

    Raises:
        ApiError: The turn failed; it stays open, and the same request resumes it.
    """
    thinking: list[str] = []
    result: TurnResult | None = None
    async with aclosing(question.events) as events:
        async for event in events:
            match event:
                case ThinkingEvent():
                    thinking = [event.text] if event.restarted else [*thinking, event.text]
                case SourceEvent():
                    question.completion.sources.append(event)
                case DoneEvent():
                    result = event.result
    assert result is not None, "a turn ends with its result"
    if result.turn is None:
        raise ApiError(502, failure_words(result.error), kind="api_error", code="turn_failed", headers=NO_RETRY)
    question.completion.parent_turn_id = result.turn["parent_turn_id"]
    completed = question.completion.whole(result, "".join(thinking))
    return completed, _thread_header(result.tree.root.thread_id if result.tree else "")


async def _stream(question: _Question, events: TurnEvents) -> AsyncIterator[ServerSentEvent]:
    """Yield the chunks of a turn; an error is the last event before ``[DONE]``."""
    completion, failure = question.completion, None
    async with aclosing(events):
        try:
            async for event in events:
                for chunk in completion.chunks(event):
                    yield _sent(chunk)
                if isinstance(event, ErrorEvent):
                    failure = ApiError(502, failure_words(event.message), kind="api_error", code="turn_failed")
                elif isinstance(event, DoneEvent) and question.body.wants_usage:
                    yield _sent(completion.usage_chunk(event.result.usage))
        except Exception as error:  # noqa: BLE001 - the headers are sent: any error has to be an event
            failure = as_api_error(error)
    if failure is not None:
        yield json_event(data_of(failure.body))
    yield _END


def _sent(chunk: Json) -> ServerSentEvent:
    return json_event(data_of(chunk))
