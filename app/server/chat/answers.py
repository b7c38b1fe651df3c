"""Answers to a request for a chat completion, as the API's description shows them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, JsonValue

from ..serving.streams import described_events

FinishReason = Literal["stop", "length", "content_filter"]


class UrlCitation(BaseModel):
    """A source of the answer."""

    url: str
    title: str
    start_index: int
    end_index: int


class Annotation(BaseModel):
    """A citation, as OpenAI's answers hold it."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class AnswerMessage(BaseModel):
    """The answer."""

    role: Literal["assistant"]
    content: str
    reasoning_content: str = ""
    """The model's thinking."""
    refusal: str | None
    annotations: list[Annotation] = []


class Choice(BaseModel):
    """The only choice."""

    index: int
    message: AnswerMessage
    logprobs: None
    finish_reason: FinishReason
    """"length" or "content_filter" where the call that wrote the answer ended so."""


class Usage(BaseModel):
    """Tokens of all model calls of the turn, its search tree included."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    """A whole chat completion; ``judgetree`` has the turn and the thread of its search tree."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    judgetree: dict[str, JsonValue] = {}


STREAM_DESCRIPTION = "Chunks as server-sent events with `stream`; the last data is `[DONE]`."
ANSWERS: dict[int | str, dict[str, object]] = {
    200: {
        "model": ChatCompletion,
        "content": described_events(),
        "description": f"The completion. {STREAM_DESCRIPTION}",
    }
}
