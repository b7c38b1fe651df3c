"""The request of a chat call: its messages, its options, and the key that identifies it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..digests import text_digest
from .stops import check_stops

Message = tuple[str, str]
"""(role, text); the role is "system", "user" or, for an earlier reply of the model, "assistant"."""

JSON_REPAIR = "That reply cannot be used: {problem} Reply again with the JSON object alone."


def version_of(*templates: str) -> str:
    """Return eight hexadecimal digits that change whenever one of the templates does."""
    return text_digest(*templates).hex()[:8]


def texts_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the texts without their roles."""
    return tuple(text for _, text in messages)


def version_of_prompts(*prompts: Iterable[Message]) -> str:
    """Return one version, by ``version_of``, for all texts of several prompts."""
    return version_of(*(text for messages in prompts for text in texts_of(messages)))


JsonFormat = Literal["json_schema", "json_object", "text"]
"""Constraint on a JSON reply: a schema, any JSON object, or the prompt alone."""


@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """Options of a call besides its messages.

    >>> CallOptions(max_tokens=200, stop=("Observation:",)).max_tokens
    200
    """

    max_tokens: int | None = None
    """Most tokens to generate; None leaves it to the endpoint."""
    temperature: float | None = None
    """Sampling temperature; 0 for the likeliest answer, None for that of the model, else 0."""
    seed: int | None = None
    """Seed of the sampling; None leaves it to the endpoint."""
    top_logprobs: int | None = None
    """Number of alternatives of the first token to return; None for none."""
    json_format: JsonFormat | None = None
    """Constraint on a JSON reply; None for plain text."""
    json_schema: Mapping[str, object] | None = None
    """The schema of ``json_format="json_schema"``."""
    stop: tuple[str, ...] = ()
    """Texts at which the answer ends; it holds none of them. They do not end its thinking."""
    thinking: bool | None = None
    """Whether the model thinks before it answers; None leaves it to the endpoint."""
    is_shortened: bool = False
    """Whether the messages were shortened to the setting ``llm_max_tokens``, which the call's record then says."""

    def __post_init__(self) -> None:
        if self.stop != ():
            check_stops(self.stop)


PLAIN_TEXT = CallOptions()
_UNSET: Mapping[str, tuple[object]] = {
    "seed": (None,),
    "stop": ((),),
    "thinking": (None,),
    "is_shortened": (False,),
}
"""Options that are part of a call's key only where they are set, with the value that they have else."""


def call_key(endpoint: str, model: str, messages: Sequence[Message], options: CallOptions, repeat: int = 0) -> bytes:
    """Return a SHA-256 over all that decides an answer: endpoint, model, messages, options and the repeat.

    ``endpoint`` is ``EndpointLLM.endpoint``: a name without user, password or key.
    """
    given = {**vars(options), "temperature": options.temperature or 0.0}
    asked = {
        "endpoint": endpoint,
        "model": model,
        "messages": list(messages),
        "options": {name: value for name, value in given.items() if value not in _UNSET.get(name, ())},
        "repeat": repeat,
    }
    return text_digest(json.dumps(asked, sort_keys=True, default=dict))
