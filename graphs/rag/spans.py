"""A search tree as spans of OpenTelemetry, by its conventions for generative AI; plain data, with the true times.

The spans are a tree: the question; below it its searches, the judging of each chunk with the judge's calls, the
sub-runs of its chunks, and the calls for its answer. Ids follow from the tree: sent twice, it is still one trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from ...modules.calls.completion import Completion
from ...modules.calls.record import CallRecord
from ...modules.calls.transcripts import Transcript
from ...modules.digests import text_digest
from ..threads.state import Search
from ..tree.nodes import ChunkNode, QueryNode, walk_queries
from .search_tree import SearchTree

Attribute = str | bool | int | float | list[str]

PROVIDER = "openai"
"""Provider in all spans: every model is reached by OpenAI's API, whoever serves it."""
_OPERATIONS = {"chat": "chat", "embedding": "embeddings", "rerank": "rerank"}
_REQUEST_OPTIONS = {
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "seed": "gen_ai.request.seed",
    "stop": "gen_ai.request.stop_sequences",
}


@dataclass(frozen=True, kw_only=True)
class Span:
    """One span."""

    name: str
    span_id: bytes
    """8 bytes."""
    parent_id: bytes | None
    """None for the question."""
    start_ns: int
    """Unix time in nanoseconds."""
    end_ns: int
    attributes: Mapping[str, Attribute]
    is_call: bool = False
    """True for a call of a model, which another process serves."""
    error: str = ""
    """``""`` if nothing failed."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Spans that belong together."""

    trace_id: bytes
    """16 bytes."""
    spans: tuple[Span, ...]
    """Parents before children; the first has no parent."""


def trace_of(tree: SearchTree) -> Trace:
    """Return the spans of a tree; the question is the first.

    Queries, answers, chunks and messages are in them only if the tree has transcripts: where nothing was recorded, the
    spans have names, times, tokens and verdicts alone.

    Raises:
        SettingsError: The transcripts cannot be read.
    """
    trace_id = text_digest("trace", tree.root.thread_id, tree.root.started_at or "")[:16]
    return Trace(trace_id=trace_id, spans=tuple(_Spans(tree, tree.read_transcripts()).all()))


class _Spans:
    def __init__(self, tree: SearchTree, transcripts: Mapping[str, Transcript]) -> None:
        self._tree = tree
        self._transcripts = transcripts
        self._with_content = bool(transcripts)
        self._system = tree.fingerprint.get("system", "")
        self._times = {node.thread_id: _times_of_query(node) for node in walk_queries(tree.root)}

    def all(self) -> Iterator[Span]:
        for node in walk_queries(self._tree.root):
            yield self._query(node)
            yield from self._searches(node)
            yield from self._judging(node)
            judged = {chunk.chunk_id for chunk in node.chunks}
            for record in node.usage:
                if record["chunk_id"] not in judged and record["kind"] == "chat":
                    yield self._call(record, _query_id(node.thread_id))

    def _query(self, node: QueryNode) -> Span:
        is_root = node is self._tree.root
        operation = "invoke_workflow" if is_root else "invoke_agent"
        start, end = self._times[node.thread_id]
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.agent.name": f"judgetree {self._system}".strip(),
            "judgetree.thread_id": node.thread_id,
            "judgetree.depth": node.depth,
            "judgetree.status": node.answer_status or node.status,
        }
        if is_root:
            attributes["gen_ai.workflow.name"] = attributes["gen_ai.agent.name"]
        if self._with_content:
            attributes |= {
                "gen_ai.input.messages": messages_attribute([("user", node.query)]),
                "gen_ai.output.messages": messages_attribute([("assistant", node.answer)]),
            }
        return Span(
            name=f"{operation} {self._system}".strip(),
            span_id=_query_id(node.thread_id),
            parent_id=None if is_root else _query_id(node.parent_thread_id or ""),
            start_ns=start,
            end_ns=end,
            attributes=attributes,
            error=node.error,
        )

    def _searches(self, node: QueryNode) -> Iterator[Span]:
        """Yield one span a search, with the calls of embedders and rerankers below it."""
        calls = [record for record in node.usage if record["kind"] != "chat"]
        for search in node.searches:
            start, end = search["ended_at"] - search["seconds"], search["ended_at"]
            own = [record for record in calls if start - 0.01 <= record.get("ended_at", 0.0) <= end + 0.01]
            calls = [record for record in calls if record not in own]
            span_id = text_digest("search", node.thread_id, search["query"], str(end))[:8]
            yield Span(
                name="retrieval",
                span_id=span_id,
                parent_id=_query_id(node.thread_id),
                start_ns=_ns(start),
                end_ns=_ns(end),
                attributes=self._retrieval(search, node),
            )
            for record in own:
                yield self._call(record, span_id)
        for record in calls:
            yield self._call(record, _query_id(node.thread_id))

    def _retrieval(self, search: Search, node: QueryNode) -> dict[str, Attribute]:
        scores = {chunk.chunk_id: chunk.retrieval_score or 0.0 for chunk in node.chunks}
        found = [{"id": chunk_id, "score": scores.get(chunk_id, 0.0)} for chunk_id in search["chunk_ids"]]
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.data_source.id": self._tree.fingerprint.get("retriever.collection", ""),
            "gen_ai.retrieval.documents": json.dumps(found),
        }
        if self._with_content:
            attributes["gen_ai.retrieval.query.text"] = search["query"]
        return attributes

    def _judging(self, node: QueryNode) -> Iterator[Span]:
        together = [record for record in node.usage if record["node"] == "judge_set" and not record["chunk_id"]]
        for chunk in node.chunks:
            records = [record for record in node.usage if record["chunk_id"] == chunk.chunk_id]
            times = [times for record in (*records, *together) if (times := times_of_call(record)) is not None]
            if not times:
                continue
            span_id = text_digest("judge", node.thread_id, chunk.chunk_id)[:8]
            yield Span(
                name="judge",
                span_id=span_id,
                parent_id=_query_id(node.thread_id),
                start_ns=min(start for start, _ in times),
                end_ns=max(end for _, end in times),
                attributes=self._verdict(chunk),
            )
            for record in records:
                yield self._call(record, span_id)

    def _verdict(self, chunk: ChunkNode) -> dict[str, Attribute]:
        attributes: dict[str, Attribute] = {
            "gen_ai.evaluation.name": "judgetree.verdict",
            "gen_ai.evaluation.score.label": chunk.verdict_label,
            "judgetree.chunk_id": chunk.chunk_id,
            "judgetree.source": chunk.source,
        }
        if chunk.score is not None:
            attributes["gen_ai.evaluation.score.value"] = float(chunk.score)
        if self._with_content and chunk.reason:
            attributes["gen_ai.evaluation.explanation"] = chunk.reason
        return attributes

    def _call(self, record: CallRecord, parent_id: bytes) -> Span:
        started = self._times[self._tree.root.thread_id][0]
        return span_of_call(record, parent_id, self._transcripts.get(record["call_id"]), started_ns=started)


def span_of_call(record: CallRecord, parent_id: bytes, transcript: Transcript | None, *, started_ns: int) -> Span:
    """Return the span of a model call; an interrupted one, which has no times, is at ``started_ns``."""
    operation = _OPERATIONS[record["kind"]]
    start, end = times_of_call(record) or (started_ns, started_ns)
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": record["model"],
        "judgetree.node": record["node"],
        "judgetree.attempts": record["attempts"],
        "judgetree.cached": record["cached"],
    }
    if record["kind"] == "chat":
        attributes |= {
            "gen_ai.usage.input_tokens": record["prompt_tokens"],
            "gen_ai.usage.output_tokens": record["completion_tokens"],
        }
    if record["estimated"]:
        attributes["judgetree.tokens_estimated"] = True
    if transcript is not None:
        attributes |= _content(transcript)
    if record["error"]:
        attributes["error.type"] = "ModelCallError"
    return Span(
        name=f"{operation} {record['model']}",
        span_id=text_digest("call", record["call_id"])[:8],
        parent_id=parent_id,
        start_ns=start,
        end_ns=end,
        attributes=attributes,
        is_call=True,
        error=record["error"],
    )


def _content(transcript: Transcript) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {"gen_ai.input.messages": messages_attribute(transcript.messages)}
    for option, name in _REQUEST_OPTIONS.items():
        if isinstance(value := transcript.options.get(option), int | float):
            attributes[name] = value
        elif isinstance(value, list):
            attributes[name] = [str(each) for each in value]
    if (reply := transcript.reply) is not None:
        attributes["gen_ai.output.messages"] = _reply(reply)
        if reply.finish_reason:
            attributes["gen_ai.response.finish_reasons"] = [reply.finish_reason]
    return attributes


def messages_attribute(messages: Iterable[tuple[str, str]]) -> str:
    """Return (role, text) of messages as the conventions write them: JSON."""
    return json.dumps(
        [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages], ensure_ascii=False
    )


def _reply(reply: Completion) -> str:
    parts = [{"type": "reasoning", "content": reply.thinking}] if reply.thinking else []
    parts.append({"type": "text", "content": reply.text})
    message = {"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason}
    return json.dumps([message], ensure_ascii=False)


def _times_of_query(node: QueryNode) -> tuple[int, int]:
    """Return start and end of a thread: its own times, or wider ones of its calls where it keeps only its end."""
    own = [
        int(datetime.fromisoformat(moment).timestamp() * 1e9) for moment in (node.started_at, node.ended_at) if moment
    ]
    calls = [times for record in node.usage if (times := times_of_call(record)) is not None]
    starts, ends = [start for start, _ in calls], [end for _, end in calls]
    return min([*own, *starts], default=0), max([*own, *ends], default=0)


def times_of_call(record: CallRecord) -> tuple[int, int] | None:
    """Return start and end of a call; a cached one took no time. None for one that was interrupted."""
    end = record.get("ended_at")
    if end is None:
        return None
    return _ns(end if record["cached"] else end - record["seconds"]), _ns(end)


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _query_id(thread_id: str) -> bytes:
    return text_digest("query", thread_id)[:8]
