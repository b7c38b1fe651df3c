"""Replies that a content filter ended, whatever the endpoint calls it."""

from __future__ import annotations

FILTERED = "content_filter"
"""Reason for the end of a reply that a filter ended, as OpenAI names it."""
WITHHELD = "a content filter of the endpoint withheld the answer. Loosen the filter, or ask another model"


class Withheld(ValueError):
    """A content filter took the answer; a repeated call would fail too."""

    def __init__(self) -> None:
        super().__init__(WITHHELD)


_FILTERS = frozenset(
    {
        FILTERED,
        "content_filtered",
        "guardrail_intervened",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "sensitive",
        "refusal",
        "error_toxic",
    }
)
"""The same at Bedrock, Gemini, Zhipu, Anthropic and Cohere, in small letters."""


def usual_reason(finish_reason: str) -> str:
    """Return the reason for the end of a reply, ``FILTERED`` for one that names a content filter.

    >>> usual_reason("SAFETY"), usual_reason("stop")
    ('content_filter', 'stop')
    """
    return FILTERED if finish_reason.lower() in _FILTERS else finish_reason
