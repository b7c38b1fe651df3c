"""Endpoints of the scripted server: from the bytes of a request to the answer, with counts.

Nothing here waits or touches a socket; delays and broken connections are noted in the answer for ``http`` to carry out.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pydantic import TypeAdapter, ValidationError

from ...evaluation.datasets.standards_dialogues import Dialogue
from ...evaluation.datasets.standards_qa import Question
from ...modules.calls.prompts import DEFAULT_PROMPTS, Prompts
from ...modules.errors import SettingsError
from .answers import ChatReply, EvidenceReply, RequestKind, ScriptedAnswers, evidence_reply, parse_prompt
from .behaviour import TRANSPORT_FAULTS, Behaviour, Garbling, as_json, changed, garble, stopped
from .conversation import ScriptedConversation, conversation_reply, standalone_questions
from .multistep import step_scripts
from .strategies import strategy_scripts
from .tally import LoggedRequest, Tally
from .templates import PromptMismatch, Template, scripts_for
from .text_wire import TextBody, as_text_completion
from .wire import (
    ChatBody,
    DashScopeRerankBody,
    EmbeddingsBody,
    JsonObject,
    ReceivedRequest,
    RerankBody,
    chat_chunks,
    chat_completion,
    count_tokens,
    embeddings,
    error,
    rerank_results,
    similarities,
)

_log = logging.getLogger(__name__)

Responses = Callable[[ReceivedRequest], ChatReply | None]
"""A hook with a test's own replies; None leaves the request to the script. It may block: each call has a thread."""

DASHSCOPE_RERANK = "/api/v1/services/rerank/text-rerank/text-rerank"
_JSON_OBJECT = TypeAdapter(dict[str, object])


def evidence_scripts(prompts: Prompts) -> list[tuple[Template, EvidenceReply]]:
    """Return the replies to prompts that show evidence, for ``evidence_reply``."""
    return [*step_scripts(prompts), *strategy_scripts(prompts)]


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """An answer, and how to send it."""

    status: int = 200
    body: bytes = b""
    events: tuple[bytes, ...] = ()
    """Server-sent events; if there are any they replace the body."""
    retry_after_s: float | None = None
    delay_s: float = 0.0
    """Seconds before the first byte."""
    drop: bool = False
    """Whether to close the connection half-way."""


def json_answer(data: Mapping[str, object], status: int = 200) -> Outgoing:
    """Make a JSON answer without delay."""
    return Outgoing(status=status, body=json.dumps(data, ensure_ascii=False).encode())


class Endpoints:
    """The endpoints of the server. Thread-safe."""

    def __init__(
        self,
        questions: Iterable[Question] = (),
        *,
        dialogues: Sequence[Dialogue] = (),
        behaviour: Behaviour | None = None,
        responses: Responses | None = None,
        prompts: Prompts = DEFAULT_PROMPTS,
    ) -> None:
        self._prompts = prompts
        self._evidence_scripts = scripts_for(evidence_scripts, prompts)
        self.answers = ScriptedAnswers([*questions, *standalone_questions(dialogues)])
        self._talk = ScriptedConversation(self.answers, dialogues)
        self.behaviour = behaviour or Behaviour()
        self.responses = responses
        self.tally = Tally()
        self._posts: dict[str, Callable[[bytes], Outgoing]] = {
            "/v1/chat/completions": self._chat,
            "/v1/completions": self._text,
            "/compatible-mode/v1/chat/completions": self._chat,
            "/v1/embeddings": self._embeddings,
            "/compatible-mode/v1/embeddings": self._embeddings,
            "/v1/rerank": self._rerank,
            "/rerank": self._rerank,
            "/compatible-api/v1/reranks": self._rerank,
            DASHSCOPE_RERANK: self._dashscope_rerank,
            "/_configure": self._configure,
            "/_reset": self._reset,
        }
        self._gets: dict[str, Callable[[], JsonObject]] = {
            "/health": lambda: {"status": "ok"},
            "/v1/models": _models,
            "/compatible-mode/v1/models": _models,
            "/_stats": self.stats,
        }

    def is_model_request(self, method: str, path: str) -> bool:
        """Return whether a request counts as a model request."""
        return method == "POST" and path in self._posts and not path.startswith("/_")

    def handle(self, method: str, path: str, body: bytes) -> Outgoing:
        """Answer one request; ``path`` has no query string. Bad input gets a 4xx, never an exception."""
        if method == "GET" and path in self._gets:
            return json_answer(self._gets[path]())
        if method == "POST" and path in self._posts:
            try:
                return self._posts[path](body)
            except (ValidationError, PromptMismatch, SettingsError) as problem:
                return json_answer(error(400, str(problem), dashscope=path == DASHSCOPE_RERANK), 400)
        known = ", ".join([f"GET {path}" for path in self._gets] + [f"POST {path}" for path in self._posts])
        return json_answer(error(404, f"There is no {method} {path}. Known: {known}."), 404)

    def stats(self) -> JsonObject:
        """Return counters and behaviour as JSON data."""
        return {**self.tally.stats(), "behaviour": as_json(self.behaviour)}

    def configure(self, changes: Mapping[str, object]) -> None:
        """Replace some fields of the behaviour for later requests.

        Raises:
            SettingsError: A field is unknown or its value not allowed.
        """
        self.behaviour = changed(self.behaviour, changes)

    def _configure(self, raw: bytes) -> Outgoing:
        self.configure(_JSON_OBJECT.validate_json(raw))
        return json_answer(self.stats())

    def _reset(self, _: bytes) -> Outgoing:
        self.tally.reset()
        return json_answer(self.stats())

    def _text(self, raw: bytes) -> Outgoing:
        return self._answer(TextBody.model_validate_json(raw).chat(), raw, as_text=True)

    def _chat(self, raw: bytes) -> Outgoing:
        return self._answer(ChatBody.model_validate_json(raw), raw, as_text=False)

    def _answer(self, body: ChatBody, raw: bytes, *, as_text: bool) -> Outgoing:
        prompt = parse_prompt(body.dialogue, self._prompts)
        behaviour = self.behaviour

        def respond(number: int, attempt: int, garbling: Garbling | None) -> Outgoing:
            if problem := _unsupported(body, behaviour):
                return json_answer(error(400, problem), 400)
            request = ReceivedRequest(
                model=body.model,
                messages=body.dialogue,
                prompt=prompt,
                response_format=body.format,
                attempt=attempt,
                temperature=body.temperature,
                thinking=body.thinking,
                max_tokens=body.max_tokens,
                seed=body.seed,
                stops=body.stops,
            )
            reply = self._reply(request, behaviour)
            if reply.status != 200:
                return json_answer(error(reply.status, reply.text), reply.status)
            reply = garble(reply, garbling) if garbling else reply
            reply = stopped(reply, body.stops) if behaviour.stops == "honoured" else reply
            with_logprobs = body.logprobs and behaviour.logprobs == "given"
            return _completion(body, reply, number, with_logprobs=with_logprobs, as_text=as_text)

        return self._serve(prompt.kind, prompt.query, raw, respond)

    def _reply(self, request: ReceivedRequest, behaviour: Behaviour) -> ChatReply:
        scripted = self.responses(request) if self.responses else None
        scripted = scripted or evidence_reply(self._evidence_scripts, self.answers, request.messages)
        scripted = scripted or conversation_reply(
            self._talk, request.messages, knows_by_heart=behaviour.knows_by_heart, prompts=self._prompts
        )
        return scripted or self.answers.reply(request.prompt, knows_by_heart=behaviour.knows_by_heart)

    def _embeddings(self, raw: bytes) -> Outgoing:
        body = EmbeddingsBody.model_validate_json(raw)
        return self._serve("embeddings", "", raw, lambda *_: json_answer(embeddings(body)))

    def _rerank(self, raw: bytes) -> Outgoing:
        body = RerankBody.model_validate_json(raw)

        def respond(number: int, *_: object) -> Outgoing:
            results = rerank_results(body, self._relevances(body))
            head: JsonObject = {"id": f"rerank-{number}", "object": "list", "model": body.model}
            return json_answer({**head, "results": results, "usage": {"total_tokens": _rerank_tokens(body)}})

        return self._serve("rerank", body.query, raw, respond)

    def _dashscope_rerank(self, raw: bytes) -> Outgoing:
        body = DashScopeRerankBody.model_validate_json(raw).flat()

        def respond(number: int, *_: object) -> Outgoing:
            output = {"results": rerank_results(body, self._relevances(body))}
            usage = {"total_tokens": _rerank_tokens(body)}
            return json_answer({"output": output, "usage": usage, "request_id": f"rerank-{number}"})

        return self._serve("rerank", body.query, raw, respond, dashscope=True)

    def _relevances(self, body: RerankBody) -> list[float]:
        """Score the texts in [0, 1]: two thirds by the judge's score, one third by shared words."""
        close = similarities(body.query, body.texts)
        scores = [self.answers.judge(body.query, text)[0] for text in body.texts]
        return [(score + words) / 3 for score, words in zip(scores, close, strict=True)]

    def _serve(
        self,
        kind: RequestKind,
        query: str,
        raw: bytes,
        respond: Callable[[int, int, Garbling | None], Outgoing],
        *,
        dashscope: bool = False,
    ) -> Outgoing:
        """Count a model request, apply its fault, and log its answer."""
        behaviour = self.behaviour
        number, attempt = self.tally.count(kind, raw)
        fault = behaviour.draw_fault(kind=kind, content=raw, attempt=attempt)
        if fault in ("429", "500"):
            status = int(fault)
            outgoing = json_answer(error(status, f"Scripted fault {fault}.", dashscope=dashscope), status)
            outgoing = replace(outgoing, retry_after_s=behaviour.retry_after_s if status == 429 else None)
        else:
            garbling = None if fault in TRANSPORT_FAULTS else cast(Garbling | None, fault)
            outgoing = respond(number, attempt, garbling)
        held_s = behaviour.hold_s if fault == "timeout" else 0.0
        self.tally.note(
            LoggedRequest(number=number, kind=kind, query=query, attempt=attempt, fault=fault, status=outgoing.status)
        )
        return replace(outgoing, delay_s=behaviour.latency_s + held_s, drop=fault == "drop")


def _models() -> JsonObject:
    return {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "judgetree"}]}


def _rerank_tokens(body: RerankBody) -> int:
    return count_tokens([body.query, *body.texts])


def _unsupported(body: ChatBody, behaviour: Behaviour) -> str:
    """Return why the endpoint refuses the request; ``""`` if it does not."""
    if body.format in behaviour.refused_formats:
        return f"response_format of type {body.format} is not supported."
    if body.format == "json_object" and not any("json" in text.lower() for _, text in body.dialogue):
        return "With response_format json_object, a message must contain the word 'json'."
    if body.logprobs and behaviour.logprobs == "refused":
        return "logprobs is not supported."
    if body.stops and behaviour.stops == "refused":
        return "Unsupported parameter: 'stop' is not supported with this model."
    return ""


def _completion(body: ChatBody, reply: ChatReply, number: int, *, with_logprobs: bool, as_text: bool) -> Outgoing:
    if not body.stream:
        whole = chat_completion(body, reply, number=number, with_logprobs=with_logprobs)
        return json_answer(as_text_completion(whole) if as_text else whole)
    chunks = chat_chunks(body, reply, number=number, with_logprobs=with_logprobs)
    chunks = map(as_text_completion, chunks) if as_text else chunks
    events = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode() for chunk in chunks]
    return Outgoing(events=(*events, b"data: [DONE]\n\n"))
