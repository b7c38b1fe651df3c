"""Answers in the shapes of OpenAI's chat completions: whole, and as chunks of a stream."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ....graphs.conversation.turn.events import (
    ContentEvent,
    ConversationEvent,
    DoneEvent,
    SessionEvent,
    SourceEvent,
    ThinkingEvent,
    TreeEvent,
)
from ....graphs.conversation.turn.result import TurnResult
from ....graphs.rag.search_tree import SearchTree
from ....modules.calls.prices import Prices, usage_by_model
from ....modules.calls.record import CallRecord, caveats_of, is_declined
from ....modules.calls.usage import UsageTotals
from ....modules.memory.costs import cost_of_turn
from ....modules.reader.prompts import REFUSAL
from ..serving.errors import ErrorBody
from ..serving.options import SourcesForm
from .answers import FinishReason
from .sources import AnswerLinks, AnswerSources, Json

_VOID = "\n\n---\n\n"
"""What stands between a void beginning and the answer, for clients that cannot take text back."""


@dataclass(kw_only=True)
class GrowingCompletion:
    """One chat completion while it grows."""

    model: str
    links: AnswerLinks
    prices: Prices
    conversation: str = ""
    """Name of the conversation as its owner knows it."""
    sources_form: SourcesForm = "annotations"
    is_open_webui: bool = False
    """Whether Open WebUI reads the stream: it makes a source of an annotation too, and so gets its own events alone."""
    is_json: bool = False
    """Whether the answer is JSON, which nothing may stand behind."""
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))
    parent_turn_id: str = ""
    sources: list[SourceEvent] = field(default_factory=list)
    _sent: str = ""
    """All content sent."""
    _begin: int = 0
    """Where in it the answer begins, behind what is void."""

    def chunks(self, event: ConversationEvent) -> Iterator[Json]:
        """Yield the chunks of a live event, none for most of them."""
        match event:
            case SessionEvent():
                self.parent_turn_id = event.parent_turn_id
                yield self.chunk({"role": "assistant", "content": ""})
            case ThinkingEvent() if event.text:
                yield self.chunk({"reasoning_content": event.text})
            case ContentEvent():
                yield from self._content(event)
            case TreeEvent():
                if words := _format_progress(event):
                    yield self._event("status", {"description": words, "done": False})
            case SourceEvent():
                self.sources.append(event)
            case DoneEvent() if event.result.turn is not None:
                yield from self._end(event.result)

    def chunk(self, delta: Json, *, finish_reason: str | None = None, **fields: object) -> Json:
        """Return one chunk."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._head("chat.completion.chunk") | {"choices": [choice]} | fields

    def usage_chunk(self, usage: UsageTotals) -> Json:
        """Return the chunk of usage, which has no choices."""
        return self._head("chat.completion.chunk") | {"choices": [], "usage": usage_of(usage)}

    def whole(self, result: TurnResult, thinking: str) -> Json:
        """Return the whole completion of a turn that was answered."""
        sources, refusal = self._sources(result, result.answer), self._refusal(result)
        message: Json = {
            "role": "assistant",
            "content": result.answer + (sources.markdown() if self._lists_sources else ""),
            "refusal": refusal,
            "annotations": sources.annotations() if self._annotates else [],
        }
        if refusal and self.is_json:
            message["content"] = None
        if thinking:
            message["reasoning_content"] = thinking
        ended = finish_reason_of(result.answer_calls)
        return self.whole_of(message, result.usage, ended) | {"judgetree": self._own(result, sources)}

    def whole_of(self, message: Json, usage: UsageTotals, ended: FinishReason = "stop") -> Json:
        """Return a whole completion."""
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": ended}
        return self._head("chat.completion") | {"choices": [choice], "usage": usage_of(usage)}

    def _content(self, event: ContentEvent) -> Iterator[Json]:
        if event.restarted and len(self._sent) > self._begin:
            yield self._content_chunk(_VOID)
            self._begin = len(self._sent)
            yield self._event("replace", {"content": ""})
        if event.text and not self.is_json:  # which is whole at its end, or a refusal
            yield self._content_chunk(event.text)

    def _content_chunk(self, text: str) -> Json:
        self._sent += text
        return self.chunk({"content": text})

    def _end(self, result: TurnResult) -> Iterator[Json]:
        if len(self._sent) == self._begin and result.answer and not (self.is_json and self._refusal(result)):
            yield self._content_chunk(result.answer)  # JSON, or an answer of an earlier request, is not streamed
        sources, begin = self._sources(result, self._sent[self._begin :]), self._begin
        if self._lists_sources and (listed := sources.markdown()):
            yield self._content_chunk(listed)
        if self._annotates:
            for data in sources.open_webui_sources():
                yield self._event("source", data)
            if not self.is_open_webui and (annotations := sources.annotations(begin)):
                yield self.chunk({"annotations": annotations})
        yield self._event("status", {"description": "", "done": True, "hidden": True})
        if refusal := self._refusal(result):
            yield self.chunk({"refusal": refusal})
        yield self.chunk({}, finish_reason=finish_reason_of(result.answer_calls), judgetree=self._own(result, sources))

    def _event(self, kind: str, data: Mapping[str, object]) -> Json:
        """Return a chunk with an event of Open WebUI, which other clients ignore."""
        return self.chunk({}) | {"event": {"type": kind, "data": data}}

    @property
    def _annotates(self) -> bool:
        return self.sources_form in ("annotations", "both")

    def _refusal(self, result: TurnResult) -> str | None:
        if is_declined(result.answer, result.answer_calls):
            return result.answer
        return REFUSAL if self.is_json and result.status == "refused" else None

    @property
    def _lists_sources(self) -> bool:
        return self.sources_form in ("markdown", "both") and not self.is_json

    def _sources(self, result: TurnResult, text: str) -> AnswerSources:
        return AnswerSources(given=self.sources, result=result, text=text, links=self.links)

    def _own(self, result: TurnResult, sources: AnswerSources) -> Json:
        tree = result.tree
        return {
            "conversation": self.conversation,
            "turn_id": result.turn_id,
            "parent_turn_id": self.parent_turn_id,
            "thread_id": tree.root.thread_id if tree else "",
            "tree_url": sources.tree_url,
            "cited": sources.cited,
            "spent_limits": sorted(tree.spent_limits) if tree else [],
            "branch": result.branch,
            "status": result.status,
            "answered_from": result.answered_from,
            "answer": result.answer,
            "usage": result.usage,
            "caveats": result.caveats,
            "cost_usd": cost_of_turn(result.turn, self.prices).usd if result.turn else None,
            "tree_cost_usd": self._tree_cost(tree) if tree else 0.0,
        }

    def _tree_cost(self, tree: SearchTree) -> float | None:
        records = (record for node in tree.query_nodes() for record in node.paid)
        return self.prices.cost_of(usage_by_model(records)).usd

    def _head(self, kind: str) -> Json:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def finish_reason_of(calls: Iterable[CallRecord]) -> FinishReason:
    """Return how the newest of the calls ended that wrote an answer; "stop" for none, such as those of a saved turn."""
    caveats = [caveats_of(record) for record in calls][-1:]
    if any("filtered" in found for found in caveats):
        return "content_filter"
    return "length" if any("reply_cut" in found for found in caveats) else "stop"


def usage_of(usage: UsageTotals) -> Json:
    """Return the tokens of all calls of a turn as OpenAI's ``usage``."""
    prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def data_of(document: Mapping[str, object] | ErrorBody) -> str:
    """Return the data of a server-sent event; an error has OpenAI's shape."""
    plain = {"error": document.model_dump()} if isinstance(document, ErrorBody) else document
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _format_progress(event: TreeEvent) -> str:
    """Describe a step of the search for people; ``""`` for steps that say nothing new."""
    query = event.event.get("query")
    return f"searched: {query}" if event.event.get("event") == "chunks" and isinstance(query, str) else ""
