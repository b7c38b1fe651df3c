"""A turn as typed events: what comes, in which order, and what they add up to."""

from __future__ import annotations

import asyncio
import json

import pytest

from judgetree.graphs.conversation.turn.events import (
    ContentEvent,
    ConversationEvent,
    DoneEvent,
    Stream,
    ThinkingEvent,
    event_document,
)
from judgetree.graphs.conversations import Conversations
from judgetree.modules.calls.growing_text import Delta
from judgetree.modules.errors import SettingsError
from judgetree.modules.memory.turns import MAX_THINKING_CHARS
from tests.graphs.conversation.talk import CLASS, DOWN, TalkingLLM, after_first_turn


def joined(events: list[ConversationEvent], kind: type[ContentEvent] | type[ThinkingEvent]) -> str:
    """The text that a listener who follows the events has in the end."""
    text = ""
    for event in events:
        if isinstance(event, kind):
            text = event.text if event.restarted else text + event.text
    return text


def test_events_begin_with_the_session_and_end_with_the_result(talks: Conversations) -> None:
    events = list(talks.conversation("s").stream(CLASS))
    kinds = [event.type for event in events]
    assert (kinds[0], kinds[-1]) == ("session", "done")
    assert kinds.index("content") < kinds.index("source")
    assert joined(events, ContentEvent) == "Delta"
    done = events[-1]
    assert isinstance(done, DoneEvent)
    assert done.result.answer == "Delta"


def test_steps_and_the_search_are_told_as_they_come(talks: Conversations) -> None:
    talk = after_first_turn(talks)
    events = [event for event in talk.stream("And its oil?") if event.type == "tree"]
    assert [event.node for event in events if not event.event] == [
        "load_history",
        "select_turns",
        "assess_history",
        "call_rag",
        "save_turn",
    ]
    assert "chunks" in [event.event["event"] for event in events if event.event]


def test_answer_from_history_is_streamed_with_its_sources(talks: Conversations) -> None:
    talk = after_first_turn(talks)
    events = list(talk.stream("Which colour has it?"))
    assert joined(events, ContentEvent) == "green"
    assert [(event.number, event.source) for event in events if event.type == "source"] == [(1, "class.md")]


def test_thinking_is_told_apart_from_the_answer(talks: Conversations, llm: TalkingLLM) -> None:
    llm.broken["read"] = "<think>six by nine</think> 42"
    talk = talks.conversation("s")
    events = list(talk.stream(CLASS))
    assert (joined(events, ThinkingEvent), joined(events, ContentEvent)) == ("six by nine", "42")
    assert [turn.get("thinking") for turn in talk.history()] == ["six by nine"]


def test_a_turn_keeps_the_end_of_the_thinking_of_the_call_that_answers() -> None:
    stream = Stream(lambda _: None)
    stream.on_thinking(Delta("of a call that another one replaces"))
    stream.restart()
    stream.on_thinking(Delta("first "))
    stream.on_thinking(Delta("x" * MAX_THINKING_CHARS))
    stream.on_thinking(Delta("end"))
    assert stream.thinking == "x" * (MAX_THINKING_CHARS - 3) + "end"
    stream.on_thinking(Delta("anew", restarted=True))
    assert stream.thinking == "anew"


def test_turn_that_fails_says_so_and_can_be_resumed(talks: Conversations, llm: TalkingLLM) -> None:
    llm.broken["read"] = DOWN
    talk = talks.conversation("s")
    kinds = [event.type for event in talk.stream(CLASS)]
    assert kinds[-2:] == ["error", "done"]
    assert talk.open_turn is not None
    del llm.broken["read"]
    again = list(talk.stream(CLASS))
    assert again[0].type == "session"
    assert again[0].resumed
    assert len(talk.history()) == 1


def test_mistake_of_the_user_is_told_and_raised(talks: Conversations) -> None:
    seen: list[str] = []
    with pytest.raises(SettingsError):
        for event in talks.conversation("s").stream(CLASS, parent_turn_id="nobody"):
            seen.append(event.type)
    assert seen == ["error"]


def test_events_come_on_any_loop_and_are_plain_data(talks: Conversations) -> None:
    async def listen() -> list[ConversationEvent]:
        return [event async for event in talks.conversation("s").astream(CLASS)]

    documents = [json.loads(json.dumps(event_document(event))) for event in asyncio.run(listen())]
    assert {"session", "tree", "content", "source", "done"} <= {document["type"] for document in documents}


def test_who_stops_listening_leaves_an_open_turn(talks: Conversations) -> None:
    talk = talks.conversation("s")
    events = talk.stream(CLASS)
    assert next(events).type == "session"
    events.close()  # type: ignore[attr-defined]
    assert talk.history() == []
    assert talk.ask(CLASS).answer == "Delta"
    assert [turn["query"] for turn in talk.history()] == [CLASS]
