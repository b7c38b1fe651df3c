"""Live events of a turn: session, thinking, content, source, tree progress, error, done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from ....modules.calls.growing_text import Delta
from ....modules.memory.turns import MAX_THINKING_CHARS, ChunkRef
from ....modules.passage_names import passage_name, title_of
from ...threads.context import RunEvent

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from .result import TurnResult


@dataclass(frozen=True, kw_only=True)
class SessionEvent:
    """The turn has started; no model call has been made."""

    type: ClassVar = "session"
    name: str
    """Name of the conversation."""
    conversation_id: str
    turn_id: str
    parent_turn_id: str
    """Id of the turn before it; ``""`` for a first turn."""
    turn_number: int
    branch: str
    """Name of the branch."""
    resumed: bool
    """True for a turn that an earlier call started or finished."""


@dataclass(frozen=True, kw_only=True)
class ThinkingEvent:
    """The model's thinking grows."""

    type: ClassVar = "thinking"
    text: str
    """Text since the last ``ThinkingEvent``; the whole text if ``restarted``."""
    restarted: bool = False
    """True if the text so far is void, because the call is repeated or another one follows."""


@dataclass(frozen=True, kw_only=True)
class ContentEvent:
    """The answer grows."""

    type: ClassVar = "content"
    text: str
    """Text since the last ``ContentEvent``; the whole text if ``restarted``."""
    restarted: bool = False
    """True if the text so far is void, because the call is repeated or another one follows."""


@dataclass(frozen=True, kw_only=True)
class SourceEvent:
    """A chunk that the answer rests on; one event for each, before the ``DoneEvent``.

    First come those that the reader was shown, by their numbers there, which an answer may cite; then others, best
    first.
    """

    type: ClassVar = "source"
    number: int
    """Number of the chunk, from 1."""
    chunk_id: str
    source: str
    score: int | None
    """The judge's score, 0 to 2; None without one."""
    text: str
    title: str = ""
    """Title of its document; ``""`` if the name of its file says as much."""
    key_passage: str = ""
    """Quotation of ``text`` that the answer needs; ``""`` without one, and without ``insert_block``."""
    reason: str = ""
    """Why the chunk belongs to the answer, or why that is unknown; ``""`` without ``insert_block``."""

    @property
    def name(self) -> str:
        """Short name for people: title, else source, else id."""
        return passage_name(self.source, self.title, self.chunk_id)


@dataclass(frozen=True, kw_only=True)
class TreeEvent:
    """A node of the turn has started, or its search has an event."""

    type: ClassVar = "tree"
    node: str
    """Name of the graph node."""
    event: RunEvent
    """Event of the search (``threads.context.RunEvent``); ``{}`` at the start of a node."""


@dataclass(frozen=True, kw_only=True)
class ErrorEvent:
    """The turn failed. A started turn stays open, and the same question resumes it."""

    type: ClassVar = "error"
    message: str


@dataclass(frozen=True, kw_only=True)
class DoneEvent:
    """The turn is saved, or has failed: the last event, except where the call raises a ``UserError``."""

    type: ClassVar = "done"
    result: TurnResult


ConversationEvent = SessionEvent | ThinkingEvent | ContentEvent | SourceEvent | TreeEvent | ErrorEvent | DoneEvent
Listener = Callable[[ConversationEvent], None]


def event_document(event: ConversationEvent) -> dict[str, object]:
    """Return an event as plain data for ``json.dumps``, with its ``type``."""
    fields = event.result.to_document() if isinstance(event, DoneEvent) else asdict(event)
    return {"type": event.type, **fields}


def end_events(
    result: TurnResult, sources: Sequence[Document], refs: Sequence[ChunkRef]
) -> Iterator[ConversationEvent]:
    """Yield the last events of a turn: the chunks of ``refs`` that its answer rests on, its error, and its end."""
    for number, chunk in enumerate(sources, start=1):
        yield _source_event(number, chunk, refs)
    if result.error:
        yield ErrorEvent(message=result.error)
    yield DoneEvent(result=result)


def _source_event(number: int, chunk: Document, refs: Sequence[ChunkRef]) -> SourceEvent:
    metadata = chunk.metadata
    score, ref = metadata.get("score"), next(ref for ref in refs if ref["chunk_id"] == str(metadata["chunk_id"]))
    return SourceEvent(
        number=number,
        chunk_id=str(metadata["chunk_id"]),
        source=str(metadata.get("source", "")),
        score=score if isinstance(score, int) else None,
        text=chunk.page_content,
        title=title_of(metadata),
        key_passage=ref.get("key_passage", ""),
        reason=ref.get("reason", ""),
    )


class Stream:
    """Sends the pieces of a turn's answer and thinking to a listener, as events."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.thinking = ""
        """The thinking so far, its last ``MAX_THINKING_CHARS``."""
        self._has_sent = False

    def on_text(self, delta: Delta) -> None:
        """Send a piece of the answer."""
        self._has_sent = True
        self.listener(ContentEvent(text=delta.text, restarted=delta.restarted))

    def on_thinking(self, delta: Delta) -> None:
        """Send a piece of the thinking."""
        self._has_sent = True
        before = "" if delta.restarted else self.thinking
        self.thinking = (before + delta.text)[-MAX_THINKING_CHARS:]
        self.listener(ThinkingEvent(text=delta.text, restarted=delta.restarted))

    def restart(self) -> None:
        """Void the pieces sent so far, because another call answers."""
        if self._has_sent:
            self._has_sent = False
            self.thinking = ""
            self.listener(ThinkingEvent(text="", restarted=True))
            self.listener(ContentEvent(text="", restarted=True))
