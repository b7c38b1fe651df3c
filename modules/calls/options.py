"""What a chat call asks for besides its messages, and what tells it apart from any other call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .messages import Message

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
