"""What a turn tells while it runs, as typed events: session, thinking, content, source, tree progress, error, done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from ....modules.calls.growing_text import Delta
from ...threads.context import RunEvent

if TYPE_CHECKING:
    from .result import TurnResult


@dataclass(frozen=True, kw_only=True)
class SessionEvent:
    """The turn has begun; nothing has been asked of a model yet."""

    type: ClassVar = "session"
    name: str
    """What the conversation is called."""
    conversation_id: str
    turn_id: str
    parent_turn_id: str
    turn_number: int
    branch: str
    """Its name."""
    resumed: bool
    """Whether the turn was begun before, and goes on or is given back."""


@dataclass(frozen=True, kw_only=True)
class ThinkingEvent:
    """The model thinks on."""

    type: ClassVar = "thinking"
    text: str
    """What has come since the last such event; all, if ``restarted``."""
    restarted: bool = False
    """What came before does not count: the call is tried again, or another one follows."""


@dataclass(frozen=True, kw_only=True)
class ContentEvent:
    """The answer grows."""

    type: ClassVar = "content"
    text: str
    """As in ``ThinkingEvent``."""
    restarted: bool = False


@dataclass(frozen=True, kw_only=True)
class SourceEvent:
    """A chunk that the answer rests on; one event each, best first, before the turn is done."""

    type: ClassVar = "source"
    number: int
    """From 1 on."""
    chunk_id: str
    source: str
    score: int | None
    """The judge's, 0 to 2; None where it gave none."""
    text: str


@dataclass(frozen=True, kw_only=True)
class TreeEvent:
    """The search, or another step of the turn, has come further."""

    type: ClassVar = "tree"
    node: str
    """The step, by the name of its graph node."""
    event: RunEvent
    """As in ``context.RunEvent`` where it is the search's, else ``{}``."""


@dataclass(frozen=True, kw_only=True)
class ErrorEvent:
    """The turn could not be finished. If it had begun, it stays open, and the same question goes on with it."""

    type: ClassVar = "error"
    message: str


@dataclass(frozen=True, kw_only=True)
class DoneEvent:
    """The turn is saved, or has failed: the last event. After a mistake of the caller's, who gets that raised, there is
    none."""

    type: ClassVar = "done"
    result: TurnResult


ConversationEvent = SessionEvent | ThinkingEvent | ContentEvent | SourceEvent | TreeEvent | ErrorEvent | DoneEvent
Listener = Callable[[ConversationEvent], None]


def event_document(event: ConversationEvent) -> dict[str, object]:
    """An event as plain data that ``json.dumps`` takes, with its ``type``."""
    told = event.result.to_document() if isinstance(event, DoneEvent) else asdict(event)
    return {"type": event.type, **told}


class Stream:
    """Turns the pieces of a turn's answer into events."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self._has_given = False

    def on_text(self, delta: Delta) -> None:
        """Pass on a piece of the answer."""
        self._has_given = True
        self.listener(ContentEvent(text=delta.text, restarted=delta.restarted))

    def on_thinking(self, delta: Delta) -> None:
        """Pass on a piece of the thinking."""
        self._has_given = True
        self.listener(ThinkingEvent(text=delta.text, restarted=delta.restarted))

    def start_over(self) -> None:
        """Void what was passed on, if anything was, since another call answers."""
        if self._has_given:
            self._has_given = False
            self.listener(ThinkingEvent(text="", restarted=True))
            self.listener(ContentEvent(text="", restarted=True))
