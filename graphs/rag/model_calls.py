"""The model calls of a search tree, with what was sent and what came as far as it was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from ...modules.calls.messages import Message
from ...modules.calls.record import CallRecord
from ...modules.calls.transcripts import RecordedCall, Transcript, TranscriptPlace
from ..drawing.calls import draw_call, draw_call_html, draw_calls, draw_calls_html
from ..tree.nodes import QueryNode, walk_queries


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One model call of a search tree; a notebook shows it as a page."""

    query_number: int
    """Number of its query in the tree, from 1, parents before children; 0 for a recorded call that no query has: of a
    conversation's turn besides its search, or of a run that was cut off."""
    number: int
    """Number among the calls of its query, from 1."""
    thread_id: str
    query: str
    depth: int
    record: CallRecord
    """Node, model, tokens, seconds, attempts, cache and error."""
    transcript: Transcript | None = None
    """What was sent and what came; None if the call was not recorded."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was sent; empty if the call was not recorded."""
        return self.transcript.messages if self.transcript else ()

    @property
    def reply(self) -> str:
        """The text that came back, without thinking; ``""`` without one."""
        return self.transcript.reply.text if self.transcript and self.transcript.reply else ""

    def to_document(self) -> dict[str, object]:
        """Return the call as plain data for ``json.dumps``."""
        return asdict(self)

    def __str__(self) -> str:
        return draw_call(self)

    def _repr_html_(self) -> str:
        return draw_call_html(self)


class ModelCalls(tuple[ModelCall, ...]):
    """The calls of a tree, query by query; a table in a notebook and as text.

    ::

        calls = session.ask("Which oil does KS-1 need?").tree.calls()
        print(calls[0].messages, calls[0].reply)
        calls.of_query(1)
    """

    __slots__ = ()

    def of_query(self, query_number: int, number: int | None = None) -> ModelCalls:
        """Return the calls of one query, or the one of that number among them; empty if there is none."""
        return ModelCalls(call for call in self if call.query_number == query_number and number in (None, call.number))

    @property
    def recorded(self) -> int:
        """Number of calls whose texts were recorded."""
        return sum(call.transcript is not None for call in self)

    def to_text(self, *, full: bool = False, width: int = 100) -> str:
        """Draw a table for a terminal of ``width`` columns; ``full`` draws the chat calls with messages and replies."""
        if not full:
            return draw_calls(self, width=width)
        chats = [call for call in self if call.record["kind"] == "chat"]
        return "\n\n".join(map(draw_call, chats or self))

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return draw_calls_html(self)


def calls_of(root: QueryNode, transcripts: TranscriptPlace | None) -> Iterator[ModelCall]:
    """Yield the calls of a tree, query by query, after the recorded calls of its root thread that no query has.

    Raises:
        SettingsError: The transcripts cannot be read.
    """
    known = {record["call_id"] for node in walk_queries(root) for record in node.usage}
    recorded = transcripts.read(known, root=root.thread_id) if transcripts else []
    yield from _others(root, [call for call in recorded if call.record["call_id"] not in known])
    yield from _of_queries(root, {call.record["call_id"]: call for call in recorded})


def _of_queries(root: QueryNode, recorded: Mapping[str, RecordedCall]) -> Iterator[ModelCall]:
    for query_number, node in enumerate(walk_queries(root), start=1):
        for number, record in enumerate(node.usage, start=1):
            found = recorded.get(record["call_id"])
            yield ModelCall(
                query_number=query_number,
                number=number,
                thread_id=node.thread_id,
                query=node.query,
                depth=node.depth,
                record=record,
                transcript=found.transcript if found else None,
            )


def _others(root: QueryNode, recorded: Iterable[RecordedCall]) -> Iterator[ModelCall]:
    for number, call in enumerate(recorded, start=1):
        yield ModelCall(
            query_number=0,
            number=number,
            thread_id=root.thread_id,
            query=root.query,
            depth=root.depth,
            record=call.record,
            transcript=call.transcript,
        )


def transcripts_of(graph: object) -> TranscriptPlace | None:
    """Return where a graph keeps the transcripts of its calls; None for one that has no such place."""
    place = getattr(graph, "transcripts", None)
    return place if isinstance(place, TranscriptPlace) else None
