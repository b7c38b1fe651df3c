"""``POST /knowledge_chat_conversation``: one question of a conversation, answered as named server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import chain

from fastapi import APIRouter
from fastapi.responses import Response, StreamingResponse
from sse_starlette import ServerSentEvent

from ....graphs.conversation.turn.events import DoneEvent, ErrorEvent
from ..serving.asking import asked, check_question
from ..serving.caller import Caller, CallerBy
from ..serving.errors import as_api_error
from ..serving.running import QuestionEvents, identity_of
from ..serving.served import Served, ServedBy
from ..serving.streams import described_events, question_stream
from ..serving.unnamed import new_name
from .model_choice import chosen_model, named_llm
from .requests import KnowledgeQuestion
from .turn_lines import TurnLines

router = APIRouter(tags=["knowledge chat"])

_STREAM: dict[str, object] = {
    "content": described_events(data="^(SESSION|THINK|CONTENT|SOURCE|RESTART|ERROR|DONE): "),
    "description": "Named events, as the data of server-sent events.",
}


@router.post("/knowledge_chat_conversation", response_class=StreamingResponse, responses={200: _STREAM})
async def knowledge_chat_conversation(body: KnowledgeQuestion, served: ServedBy, caller: CallerBy) -> Response:
    """Answer a question as server-sent events without an ``event:`` field, each ``data: NAME: …``.

    ``THINK`` is text: a line of progress first, then the model's thinking. ``SESSION`` is JSON and names conversation
    and turn. ``CONTENT`` is text, pieces of the answer. ``SOURCE`` is JSON, a chunk that the answer rests on, with
    ``key_passage`` and ``reason`` where ``use_insert_block`` is set. ``ERROR`` is a line. ``DONE`` is JSON and the last
    event. ``RESTART`` is JSON: what was sent so far of its ``events`` is void.

    Each line of a text is an event of its own; one that ends with a newline has an empty ``data:`` line behind it.

    The same question to the same ``session_id`` resumes a turn that was broken off, on any worker; its first
    answer is void then, and ``RESTART`` says so.
    """
    check_question(body.question, served.options, param="question")
    name = body.session_id if body.session_id.strip() else new_name()
    events = await _events(body, name, served, caller)
    return question_stream(_lines(TurnLines(name=name), events), events, served.options)


async def _events(body: KnowledgeQuestion, name: str, served: Served, caller: Caller) -> QuestionEvents:
    model, llm = await chosen_model(served, caller, body.model_id or "")
    conversations = await served.conversations(model)
    filter_id = body.insert_block_llm_id
    keys = {
        "llm": llm,
        "thinking": body.thinking,
        "topk": body.rerank_top_n,
        "insert_block": body.use_insert_block or None,
        "insert_block_llm": named_llm(served, filter_id, param="insert_block_llm_id") if filter_id else None,
    }
    conversation = conversations.conversation(caller.stored_name(name))
    return asked(
        served,
        caller,
        conversation,
        body.question,
        parent_turn_id=body.parent_turn_id,
        keys=keys,
        identity=identity_of(caller, "knowledge", body.model_dump()),
        grace_s=served.options.grace_of(),
    )


async def _lines(lines: TurnLines, events: QuestionEvents) -> AsyncIterator[ServerSentEvent]:
    """Yield all events of an answer; an error is the last before ``DONE``."""
    is_done = False
    failed: list[ErrorEvent] = []  # whose words are those of an error that follows
    async with aclosing(events):
        for line in lines.first():
            yield line
        try:
            async for event in events:
                if isinstance(event, ErrorEvent):
                    failed.append(event)
                    continue
                for line in chain.from_iterable(map(lines.events, (*failed, event))):
                    yield line
                failed.clear()
                is_done = isinstance(event, DoneEvent)
        except Exception as error:  # noqa: BLE001 - the headers are sent: any error has to be an event
            for line in lines.failed(as_api_error(error).body.message):
                yield line
            return
    assert is_done, "a turn ends with its result"
