"""The events of a turn as a knowledge chat's clients read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from sse_starlette import ServerSentEvent

from ....graphs.conversation.turn.events import (
    ContentEvent,
    ConversationEvent,
    DoneEvent,
    ErrorEvent,
    SessionEvent,
    SourceEvent,
    ThinkingEvent,
)
from ....graphs.conversation.turn.result import TurnResult
from ..serving.errors import failure_words
from .framing import EventName, json_event, line_event, text_events

_PROGRESS = "Reading the question.\n"


@dataclass(kw_only=True)
class TurnLines:
    """Events of one answer, in order."""

    name: str
    """Name of the conversation as its owner knows it."""
    _sent: set[EventName] = field(default_factory=set)
    """Growing texts of which something was sent."""

    def first(self) -> Iterator[ServerSentEvent]:
        """Yield the progress line, which is sent before anything is opened or locked."""
        yield from text_events("THINK", _PROGRESS)

    def events(self, event: ConversationEvent) -> Iterator[ServerSentEvent]:
        """Yield what is sent for an event of the turn."""
        match event:
            case SessionEvent():
                yield self._session(event)
                if event.resumed:
                    yield self._restart("THINK", "CONTENT")
            case ThinkingEvent():
                yield from self._grown("THINK", event.text, restarted=event.restarted)
            case ContentEvent():
                yield from self._grown("CONTENT", event.text, restarted=event.restarted)
            case SourceEvent():
                document = {name: value for name, value in asdict(event).items() if name != "type"}
                yield json_event("SOURCE", document)
            case ErrorEvent():
                yield line_event("ERROR", failure_words(event.message))
            case DoneEvent():
                yield from self._end(event.result)

    def failed(self, message: str) -> Iterator[ServerSentEvent]:
        """Yield the end of a turn that could not be started or was broken off."""
        if message:
            yield line_event("ERROR", message)
        yield json_event("DONE", {"session_id": self.name, "status": "failed"})

    def _grown(self, name: EventName, text: str, *, restarted: bool) -> Iterator[ServerSentEvent]:
        if restarted and name in self._sent:
            yield self._restart(name)
        if text:
            self._sent.add(name)
            yield from text_events(name, text)

    def _restart(self, *names: EventName) -> ServerSentEvent:
        self._sent -= set(names)
        return json_event("RESTART", {"events": names})

    def _session(self, event: SessionEvent) -> ServerSentEvent:
        document = {
            "session_id": self.name,
            "turn_id": event.turn_id,
            "parent_turn_id": event.parent_turn_id,
            "turn_number": event.turn_number,
            "branch": event.branch,
            "resumed": event.resumed,
        }
        return json_event("SESSION", document)

    def _end(self, result: TurnResult) -> Iterator[ServerSentEvent]:
        if "CONTENT" not in self._sent:  # an answer of an earlier request is not streamed
            yield from text_events("CONTENT", result.answer)
        document = {
            "session_id": self.name,
            "turn_id": result.turn_id,
            "branch": result.branch,
            "status": result.status,
            "answered_from": result.answered_from,
            "standalone_query": result.standalone_query,
            "thread_id": result.tree.root.thread_id if result.tree else "",
            "usage": result.usage,
            "insert_block": result.turn.get("insert_block") if result.turn else None,
        }
        yield json_event("DONE", document)
