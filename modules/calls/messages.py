"""What a chat call asks: its messages, its options, and the key that tells it apart from any other call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Message = tuple[str, str]
"""(role, text), role being "system", "user" or, for what a model said before, "assistant"."""

JSON_REPAIR = "That reply cannot be used: {problem} Reply again with the JSON object alone."


def version_of(*templates: str) -> str:
    """Eight hexadecimal digits that change whenever one of the templates does."""
    return hashlib.sha256("\x00".join(templates).encode()).hexdigest()[:8]


def texts_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the texts without their roles."""
    return tuple(text for _, text in messages)


JsonFormat = Literal["json_schema", "json_object", "text"]
"""How an endpoint is asked for JSON: constrained by a schema, constrained to JSON, or by the prompt alone."""


@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """What a call asks for besides its messages."""

    max_tokens: int | None = None
    """Most tokens to generate; None leaves it to the endpoint."""
    temperature: float = 0.0
    """0 for the likeliest answer; see ``sampling.SampledLLM``."""
    top_logprobs: int | None = None
    """How many alternatives of the first token to ask for; None for none."""
    json_format: JsonFormat | None = None
    """How to ask for JSON; None for plain text."""
    json_schema: Mapping[str, object] | None = None
    """The schema of ``json_format="json_schema"``."""


PLAIN_TEXT = CallOptions()


def call_key(endpoint: str, model: str, messages: Sequence[Message], options: CallOptions, repeat: int = 0) -> bytes:
    """SHA-256 over all that decides an answer: endpoint, model, messages, options with their schema, and the repeat.

    ``endpoint`` is ``EndpointLLM.endpoint``: a name without user, password or key.
    """
    asked = {
        "endpoint": endpoint,
        "model": model,
        "messages": list(messages),
        "options": vars(options),
        "repeat": repeat,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=True, default=dict).encode()).digest()
