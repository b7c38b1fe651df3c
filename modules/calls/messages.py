"""Messages to a chat model, and what all prompts share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

Message = tuple[str, str]
"""(role, text), role being "system", "user" or, for what a model said before, "assistant"."""

JSON_REPAIR = "That reply cannot be used: {problem} Reply again with the JSON object alone."


def version_of(*templates: str) -> str:
    """Eight hexadecimal digits that change whenever one of the templates does."""
    return hashlib.sha256("\x00".join(templates).encode()).hexdigest()[:8]


def texts_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """The texts without their roles."""
    return tuple(text for _, text in messages)
