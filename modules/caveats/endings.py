"""How replies ended: by themselves, at a length, by a content filter, or broken off, whatever the endpoint calls it."""

from __future__ import annotations

import re

LENGTH = "length"
"""Reason for the end of a reply that was cut off at a number of tokens, as OpenAI names it."""
FILTERED = "content_filter"
"""Reason for the end of a reply that a filter ended, as OpenAI names it."""
BROKEN_OFF = "broken_off"
"""Reason for the end of a reply that the server gave up before the model had ended it."""
WITHHELD = "a content filter of the endpoint withheld the answer. Loosen the filter, or ask another model"


class Withheld(ValueError):
    """A content filter took the answer; a repeated call would fail too."""

    def __init__(self) -> None:
        super().__init__(WITHHELD)


class BrokenOff(ValueError):
    """A server gave a reply up before the model had ended it."""

    def __init__(self, reason: object) -> None:
        super().__init__(f"the server broke its reply off (finish_reason {reason!r:.60})")


_FILTERS = ("contentfilter", "safety", "recitation", "blocklist", "prohibited", "guardrail", "spii", "toxic")
_WHOLE_FILTERS = ("sensitive", "refusal", "modelarmor")
_LENGTHS = ("length", "max", "limit", "contextwindow", "truncat", "incomplete", "repetition")
_BREAKS = ("error", "abort", "resource", "cancel", "timeout", "interrupt", "malformed", "ratelimit")
"""Parts of the words for a reply that was filtered (at Bedrock, Gemini, Zhipu, Anthropic and Cohere), that was cut
(``model_length`` at Mistral, ``max_output_tokens`` at OpenAI), or that was broken off (``insufficient_system_resource``
at DeepSeek, ``abort`` at vLLM), in small letters and without what stands between them."""
_BETWEEN = re.compile(r"[^a-z]+")


def usual_reason(finish_reason: str) -> str:
    """Return the reason for the end of a reply: ``LENGTH``, ``FILTERED``, ``BROKEN_OFF``, or the endpoint's other word.

    >>> usual_reason("SAFETY"), usual_reason("MAX_TOKENS"), usual_reason("abort"), usual_reason("stop")
    ('content_filter', 'length', 'broken_off', 'stop')
    """
    word = _BETWEEN.sub("", finish_reason.lower())
    if word in _WHOLE_FILTERS or _has_any(word, _FILTERS):
        return FILTERED
    if _has_any(word, _LENGTHS) and "ratelimit" not in word:
        return LENGTH
    return BROKEN_OFF if finish_reason == BROKEN_OFF or _has_any(word, _BREAKS) else finish_reason


def _has_any(word: str, parts: tuple[str, ...]) -> bool:
    return any(part in word for part in parts)
