"""The HTTP client of models that complete a text: ``/completions``, read as if it were a chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.messages import BaseMessage

from ..addresses import OPENAI_BASE_URL
from .one_prompt import TURN_STOPS, one_prompt
from .openai_client import ReasoningChatOpenAI

MOST_TOKENS = 1024
"""Tokens of a reply where the call sets no limit: such endpoints end after 16 by themselves."""
_OPENAI_LOGPROBS = 5
"""Most alternatives of a token that OpenAI gives at this endpoint."""
_CHAT_ONLY = ("messages", "chat_template_kwargs", "enable_thinking", "reasoning_effort")


class TextChatOpenAI(ReasoningChatOpenAI):
    """A client that sends the messages as one prompt to ``/completions`` and translates what comes.

    The prompt's stop texts (``own_stops``) are the caller's to send, since they count towards what an endpoint takes.
    JSON formats are sent as they are: vLLM takes them, and an endpoint that refuses them gets none.
    """

    path: ClassVar[str] = "/completions"
    own_stops: ClassVar[tuple[str, ...]] = TURN_STOPS
    style: ClassVar[str] = "completions"

    def body_of(self, messages: list[BaseMessage], stop: list[str] | None, **params: Any) -> dict[str, Any]:
        """Return the JSON of a request: what a chat's would be, with one prompt in place of its messages."""
        body = super().body_of(messages, stop, **params)
        turns = [(str(each["role"]), str(each["content"])) for each in body["messages"]]
        limit = body.pop("max_completion_tokens", None) or body.pop("max_tokens", None) or MOST_TOKENS
        asked = body.pop("top_logprobs", None)
        if body.pop("logprobs", False):
            is_openai = (self.openai_api_base or OPENAI_BASE_URL).startswith(OPENAI_BASE_URL)
            body["logprobs"] = min(asked or 0, _OPENAI_LOGPROBS) if is_openai else asked or 0
        kept = {name: value for name, value in body.items() if name not in _CHAT_ONLY}
        return {**kept, "prompt": one_prompt(turns), "max_tokens": limit}

    def as_chat(self, reply: Any, *, is_piece: bool) -> Any:
        """Translate a reply, or a piece of its stream, to that of a chat."""
        if not isinstance(reply, dict) or not isinstance(reply.get("choices"), list):
            return reply
        return {**reply, "choices": [_as_chat_choice(choice, is_piece=is_piece) for choice in reply["choices"]]}


def _as_chat_choice(choice: Mapping[str, Any], *, is_piece: bool) -> dict[str, Any]:
    message = {"role": "assistant", "content": choice["text"]}
    return {
        "index": choice.get("index", 0),
        "delta" if is_piece else "message": message,
        "finish_reason": choice.get("finish_reason"),
        "logprobs": _as_chat_logprobs(choice.get("logprobs")),
    }


def _as_chat_logprobs(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Translate log probabilities by token: ``tokens``, ``token_logprobs`` and, of each, ``top_logprobs`` by token."""
    if not given or "content" in given or not given.get("tokens"):  # llama.cpp gives those of a chat
        return given or None
    likeliest = given.get("top_logprobs") or [None] * len(given["tokens"])
    content = [
        {"token": token, "logprob": logprob, "top_logprobs": _ranked(top or {})}
        for token, logprob, top in zip(given["tokens"], given["token_logprobs"], likeliest, strict=True)
        if top or logprob is not None
    ]
    return {"content": content}


def _ranked(logprobs: Mapping[str, float]) -> list[dict[str, Any]]:
    ranked = sorted(logprobs.items(), key=lambda pair: -pair[1])
    return [{"token": token, "logprob": logprob} for token, logprob in ranked]
