"""Turns of conversations as traces of OpenTelemetry: a turn's span, its own model calls, and its search tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...modules.calls.prices import load_prices, usage_by_model
from ...modules.calls.record import CallRecord
from ...modules.calls.transcripts import Transcript, TranscriptPlace
from ...modules.calls.usage import UsageTotals
from ...modules.digests import text_digest
from ..rag.search_tree import SearchTree
from ..rag.spans import PROVIDER, Attribute, Span, Trace, messages_attribute, span_of_call, trace_of

_NAME = "judgetree conversation"


@dataclass(frozen=True, kw_only=True)
class TracedTurn:
    """What one call of a turn came to."""

    conversation_id: str
    turn_id: str
    resumed: bool
    query: str
    answer: str
    status: str
    """Status of the answer, ``failed``, or ``cancelled``."""
    answered_from: str
    """``""`` without an answer."""
    error: str
    """``""`` for an answered turn."""
    tree: SearchTree | None
    calls: tuple[CallRecord, ...]
    """All model calls, search and earlier runs included."""
    usage: UsageTotals
    started_ns: int
    """Unix time in nanoseconds."""
    ended_ns: int


def trace_of_turn(turn: TracedTurn, transcripts: TranscriptPlace | None, home: Path) -> Trace:
    """Return the spans of a turn, with the money by the prices of ``home`` where all prices are known; it blocks.

    All have the conversation's id. The turn's span is the first; below it are its own calls, and the spans of its
    search as ``trace_of`` makes them. Texts are in them only where they were recorded.

    Raises:
        SettingsError: Transcripts or prices cannot be read.
    """
    of_search = trace_of(turn.tree).spans if turn.tree else ()
    in_search = {record["call_id"] for node in turn.tree.query_nodes() for record in node.usage} if turn.tree else set()
    own = [record for record in turn.calls if record["call_id"] not in in_search]
    recorded = transcripts.read([record["call_id"] for record in own]) if transcripts else []
    texts = {call.record["call_id"]: call.transcript for call in recorded}
    has_texts = bool(texts) or any("gen_ai.input.messages" in span.attributes for span in of_search[:1])
    span = _span(turn, home, has_texts=has_texts)
    below = [*_own_calls(own, texts, span), *(_below(each, span) for each in of_search)]
    # A resumed turn is as long as all its runs together; a query of an open thread may have no times (0).
    start = min(each.start_ns for each in (span, *below) if each.start_ns)
    spans = [replace(span, start_ns=start, end_ns=max(each.end_ns for each in (span, *below))), *below]
    named = {"gen_ai.conversation.id": turn.conversation_id}
    return Trace(
        trace_id=text_digest("turn trace", turn.conversation_id, turn.turn_id)[:16],
        spans=tuple(replace(each, attributes={**each.attributes, **named}) for each in spans),
    )


def _span(turn: TracedTurn, home: Path, *, has_texts: bool) -> Span:
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.workflow.name": _NAME,
        "gen_ai.usage.input_tokens": turn.usage["prompt_tokens"],
        "gen_ai.usage.output_tokens": turn.usage["completion_tokens"],
        "judgetree.turn_id": turn.turn_id,
        "judgetree.resumed": turn.resumed,
        "judgetree.status": turn.status,
        "judgetree.llm_calls": turn.usage["llm_calls"],
    }
    cost = load_prices(home).cost_of(usage_by_model(turn.calls))
    if cost.is_whole:
        attributes["judgetree.cost_usd"] = cost.known_usd
    if turn.answered_from:
        attributes["judgetree.answered_from"] = turn.answered_from
    if turn.tree and turn.tree.spent_limits:
        attributes["judgetree.spent_limits"] = sorted(turn.tree.spent_limits)
    if turn.error:
        attributes["error.type"] = turn.status
    if has_texts:
        attributes["gen_ai.input.messages"] = messages_attribute([("user", turn.query)])
        attributes["gen_ai.output.messages"] = messages_attribute([("assistant", turn.answer)])
    return Span(
        name=f"invoke_workflow {_NAME}",
        span_id=text_digest("turn", turn.conversation_id, turn.turn_id)[:8],
        parent_id=None,
        start_ns=turn.started_ns,
        end_ns=turn.ended_ns,
        attributes=attributes,
        error=turn.error,
    )


def _own_calls(records: Iterable[CallRecord], texts: Mapping[str, Transcript], turn: Span) -> Iterator[Span]:
    for record in records:
        yield span_of_call(record, turn.span_id, texts.get(record["call_id"]), started_ns=turn.start_ns)


def _below(span: Span, turn: Span) -> Span:
    """Return a span of the search, of which the first is below the turn."""
    return span if span.parent_id else replace(span, parent_id=turn.span_id)
