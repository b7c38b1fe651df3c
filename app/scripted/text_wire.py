"""Wire format of ``/completions``: requests read as chats, and chats answered as completed texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from pydantic import BaseModel, Field

from ...modules.llm.one_prompt import messages_of
from .wire import ChatBody, JsonObject, ReceivedFormat, ReceivedStreamOptions


class TextBody(BaseModel):
    """The used fields of a request to complete a text, a prompt made by ``one_prompt``."""

    model: str
    prompt: str = Field(min_length=1)
    stream: bool = False
    stream_options: ReceivedStreamOptions | None = None
    logprobs: int | None = Field(default=None, ge=0, le=20)
    temperature: float | None = None
    response_format: ReceivedFormat | None = None
    stop: str | list[str] | None = None

    def chat(self) -> ChatBody:
        """Return the request as that of a chat."""
        asked = self.model_dump(exclude={"prompt", "logprobs"})
        messages = [{"role": role, "content": text} for role, text in messages_of(self.prompt)]
        return ChatBody.model_validate(
            {
                **asked,
                "messages": messages,
                "logprobs": self.logprobs is not None,
                "top_logprobs": self.logprobs,
            }
        )


def as_text_completion(data: JsonObject) -> JsonObject:
    """Convert an answer, or a chunk of its stream, to that of a completed text."""
    choices = [_text_choice(choice) for choice in cast(list[JsonObject], data["choices"])]
    return {**data, "object": "text_completion", "choices": choices}


def _text_choice(choice: JsonObject) -> JsonObject:
    said = cast(JsonObject, choice.get("message") or choice.get("delta") or {})
    logprobs = cast(Mapping[str, list[JsonObject]] | None, choice["logprobs"])
    by_token = None
    if logprobs is not None:
        by_token = {
            "tokens": [entry["token"] for entry in logprobs["content"]],
            "token_logprobs": [entry["logprob"] for entry in logprobs["content"]],
            "top_logprobs": [
                {top["token"]: top["logprob"] for top in cast(list[JsonObject], entry["top_logprobs"])}
                for entry in logprobs["content"]
            ],
        }
    text = said.get("content") or ""
    return {"index": 0, "text": text, "logprobs": by_token, "finish_reason": choice["finish_reason"]}
