"""Wire formats: incoming requests, and answers in the formats of OpenAI, Jina and DashScope.

All functions are pure. A token is up to four characters.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from .answers import ChatReply, ParsedPrompt

JsonObject = dict[str, object]

_TOKEN_CHARACTERS = 4
_DEFAULT_DIMENSIONS = 256
_LEAST_PROBABILITY = 1e-6
_SPELLINGS = (("{}", 0.8), ("{title}", 0.15), (" {}", 0.05))


class _ContentPart(BaseModel):
    type: str = "text"
    text: str = ""


class _IncomingMessage(BaseModel):
    role: str
    content: str | list[_ContentPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class ReceivedFormat(BaseModel):
    """What the reply has to be."""

    type: Literal["text", "json_object", "json_schema"] = "text"


class ReceivedStreamOptions(BaseModel):
    """What a stream tells besides."""

    include_usage: bool = False


class ChatBody(BaseModel):
    """The used fields of a chat completion request; others are ignored."""

    model: str
    messages: list[_IncomingMessage] = Field(min_length=1)
    stream: bool = False
    stream_options: ReceivedStreamOptions | None = None
    logprobs: bool = False
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    response_format: ReceivedFormat | None = None
    stop: str | list[str] | None = None
    chat_template_kwargs: Mapping[str, object] | None = None
    enable_thinking: bool | None = None

    @field_validator("stream", "logprobs", mode="before")
    @classmethod
    def _null_is_false(cls, value: object) -> object:
        return False if value is None else value

    @property
    def format(self) -> str:
        """Requested type of the response: text, json_object or json_schema."""
        return self.response_format.type if self.response_format else "text"

    @property
    def thinking(self) -> bool | None:
        """Thinking that the request switches on or off, in the words of vLLM or DashScope; None without a switch."""
        switch = (self.chat_template_kwargs or {}).get("enable_thinking", self.enable_thinking)
        return switch if isinstance(switch, bool) else None

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop texts."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def dialogue(self) -> tuple[tuple[str, str], ...]:
        """The messages as (role, text), in order."""
        return tuple((message.role, message.text) for message in self.messages)


class EmbeddingsBody(BaseModel):
    """An embeddings request; token ids count as words."""

    model: str
    input: str | list[str] | list[int] | list[list[int]]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int = Field(default=_DEFAULT_DIMENSIONS, ge=2, le=4096)

    @property
    def texts(self) -> list[str]:
        """The texts to embed, in order."""
        if isinstance(self.input, str):
            return [self.input]
        if self.input and all(isinstance(item, int) for item in self.input):
            return [" ".join(str(item) for item in self.input)]
        return [item if isinstance(item, str) else " ".join(map(str, _ids(item))) for item in self.input]


def _ids(item: int | list[int]) -> list[int]:
    return item if isinstance(item, list) else [item]


class _DocumentPart(BaseModel):
    text: str


class RerankBody(BaseModel):
    """A rerank request in the format that Jina, Cohere, vLLM and llama.cpp share."""

    model: str
    query: str
    documents: list[str | _DocumentPart] = Field(min_length=1)
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool = False

    @property
    def texts(self) -> list[str]:
        """Texts of the documents, in order."""
        return [document if isinstance(document, str) else document.text for document in self.documents]


class _DashScopeInput(BaseModel):
    query: str
    documents: list[str | _DocumentPart] = Field(min_length=1)


class _DashScopeParameters(BaseModel):
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool = False


class DashScopeRerankBody(BaseModel):
    """A rerank request in DashScope's own format."""

    model: str
    input: _DashScopeInput
    parameters: _DashScopeParameters = _DashScopeParameters()

    def flat(self) -> RerankBody:
        """Convert the request to the common format."""
        return RerankBody(
            model=self.model,
            query=self.input.query,
            documents=self.input.documents,
            top_n=self.parameters.top_n,
            return_documents=self.parameters.return_documents,
        )


@dataclass(frozen=True, kw_only=True)
class ReceivedRequest:
    """One chat request, as given to a ``responses`` hook."""

    model: str
    messages: tuple[tuple[str, str], ...]
    """(role, text), in order."""
    prompt: ParsedPrompt
    """The parsed first user message."""
    response_format: str
    """text, json_object or json_schema."""
    attempt: int
    """Number of identical requests so far, this one included."""
    temperature: float | None
    """Temperature of the request; None without one."""
    thinking: bool | None = None
    """Thinking that the request switches on or off; None without a switch."""
    max_tokens: int | None = None
    seed: int | None = None
    stops: tuple[str, ...] = ()
    """Stop texts; the reply is cut at the first one."""


def tokens_of(text: str) -> list[str]:
    """Split a text into pieces of up to four characters."""
    return [text[start : start + _TOKEN_CHARACTERS] for start in range(0, len(text), _TOKEN_CHARACTERS)]


def count_tokens(texts: Sequence[str]) -> int:
    """Count the tokens of all texts together."""
    return sum(-(-len(text) // _TOKEN_CHARACTERS) for text in texts)


def _usage(body: ChatBody, reply: ChatReply) -> JsonObject:
    prompt = count_tokens([text for _, text in body.dialogue])
    prompt = prompt if reply.context_tokens is None else min(prompt, reply.context_tokens)
    completion = count_tokens([reply.reasoning, reply.text])
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _yes_no_candidates(p_yes: float) -> list[tuple[str, float]]:
    """Return tokens and their probabilities, likeliest first: yes and no, each in three spellings."""
    candidates = [
        (spelling.format(word, title=word.title()), max(share * p, _LEAST_PROBABILITY))
        for word, p in (("yes", p_yes), ("no", 1 - p_yes))
        for spelling, share in _SPELLINGS
    ]
    return sorted(candidates, key=lambda candidate: -candidate[1])


def _logprob(token: str, probability: float) -> JsonObject:
    return {"token": token, "logprob": math.log(probability), "bytes": list(token.encode())}


def token_logprobs(reply: ChatReply, top: int) -> list[JsonObject]:
    """Compute the log probability of each token of the reply, with its ``top`` likeliest candidates, best first.

    A yes/no reply spreads its probability over spellings of both words; any other token is near certain.
    """
    entries: list[JsonObject] = []
    for token in tokens_of(reply.text):
        candidates = [(token, 0.99)] if reply.p_yes is None else _yes_no_candidates(reply.p_yes)
        chosen = dict(candidates).get(token, _LEAST_PROBABILITY)
        entries.append(
            {**_logprob(token, chosen), "top_logprobs": [_logprob(*candidate) for candidate in candidates[:top]]}
        )
    return entries


def _logprobs(entries: list[JsonObject]) -> JsonObject:
    return {"content": entries, "refusal": None}


def _head(body: ChatBody, number: int, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": body.model}


def chat_completion(body: ChatBody, reply: ChatReply, *, number: int, with_logprobs: bool) -> JsonObject:
    """Make a whole answer; ``number`` is part of its id."""
    message: JsonObject = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.refusal:
        message["refusal"] = reply.refusal
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": reply.finish_reason,
        "logprobs": _logprobs(token_logprobs(reply, body.top_logprobs or 0)) if with_logprobs else None,
    }
    usage = {"usage": _usage(body, reply)} if reply.counts_tokens else {}
    return {**_head(body, number, "chat.completion"), "choices": [choice], **usage}


def chat_chunks(body: ChatBody, reply: ChatReply, *, number: int, with_logprobs: bool) -> Iterator[JsonObject]:
    """Yield the stream chunks of an answer: role, one chunk per token, finish reason, usage if requested."""
    head = _head(body, number, "chat.completion.chunk")

    def chunk(delta: JsonObject, finish: str | None = None, logprobs: JsonObject | None = None) -> JsonObject:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": logprobs}]}

    yield chunk({"role": "assistant", "content": ""})
    if reply.reasoning:
        yield chunk({"reasoning_content": reply.reasoning})
    entries = token_logprobs(reply, body.top_logprobs or 0) if with_logprobs else []
    for index, token in enumerate(tokens_of(reply.text)):
        yield chunk({"content": token}, logprobs=_logprobs([entries[index]]) if entries else None)
    for token in tokens_of(reply.refusal):
        yield chunk({"refusal": token})
    yield chunk({}, finish=reply.finish_reason)
    if reply.counts_tokens and body.stream_options and body.stream_options.include_usage:
        yield {**head, "choices": [], "usage": _usage(body, reply)}


@lru_cache(maxsize=50_000)
def _slot(word: str) -> tuple[int, float]:
    """Hash a word to a large number, which gives its dimension, and a sign."""
    digest = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())
    return digest >> 1, 1.0 if digest & 1 else -1.0


def hash_vector(text: str, dimensions: int = _DEFAULT_DIMENSIONS) -> list[float]:
    """Hash a bag of words into a vector of length 1: the same text gives the same vector on any machine.

    Words count without case; in Chinese each character and each pair of neighbours counts. A text without words gets
    the first unit vector, since cosine similarity has no zero vector.
    """
    vector = [0.0] * dimensions
    for word in words_of(text):
        slot, sign = _slot(word)
        vector[slot % dimensions] += sign
    norm = math.sqrt(sum(value * value for value in vector))
    if not norm:
        return [1.0] + [0.0] * (dimensions - 1)
    return [round(value / norm, 7) for value in vector]


def words_of(text: str) -> list[str]:
    """Split a text into lower-case words, and Chinese runs into characters and pairs of neighbours."""
    words: list[str] = []
    for run in re.findall(r"[\u3400-\u9fff]+|[^\W\u3400-\u9fff]+", text.lower()):
        words.append(run[0] if "\u3400" <= run[0] <= "\u9fff" else run)
        if "\u3400" <= run[0] <= "\u9fff":
            words.extend(run[1:])
            words.extend(run[at : at + 2] for at in range(len(run) - 1))
    return words


def embeddings(body: EmbeddingsBody) -> JsonObject:
    """Embed the texts of a request: one vector per text, in order."""
    data: list[JsonObject] = []
    for index, text in enumerate(body.texts):
        vector = hash_vector(text, body.dimensions)
        packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        embedding = packed if body.encoding_format == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": embedding})
    tokens = count_tokens(body.texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body.model, "usage": usage}


def similarities(query: str, texts: Sequence[str]) -> list[float]:
    """Compute cosines of the hashed bags of words, clipped to [0, 1]; ``result[i]`` belongs to ``texts[i]``."""
    asked = hash_vector(query)
    return [max(0.0, sum(a * b for a, b in zip(asked, hash_vector(text), strict=True))) for text in texts]


def rerank_results(body: RerankBody, relevances: Sequence[float]) -> list[JsonObject]:
    """Rank documents, best first; ``relevances[i]`` belongs to ``body.documents[i]``. Ties keep their order."""
    order = sorted(range(len(relevances)), key=lambda index: -relevances[index])[: body.top_n]
    return [
        {
            "index": index,
            "relevance_score": round(relevances[index], 6),
            **({"document": {"text": body.texts[index]}} if body.return_documents else {}),
        }
        for index in order
    ]


def error(status: int, message: str, *, dashscope: bool = False) -> JsonObject:
    """Make an error in OpenAI's format, or in DashScope's."""
    if dashscope:
        return {"code": _DASHSCOPE_CODES.get(status, "InvalidParameter"), "message": message, "request_id": "scripted"}
    return {"error": {"message": message, "type": _ERROR_TYPES.get(status, "invalid_request_error"), "code": None}}


_ERROR_TYPES = {429: "rate_limit_error", 500: "server_error", 503: "server_error"}
_DASHSCOPE_CODES = {429: "Throttling.RateQuota", 500: "InternalError"}
