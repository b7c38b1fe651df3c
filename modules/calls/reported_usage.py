"""The usage that an endpoint reports with a reply, as far as it is possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, cast

from langchain_core.messages.ai import InputTokenDetails, UsageMetadata, add_usage

from .record import possible_count

_TOLD = "attached_usage"
"""Name under which an error has the usage of the replies that it is about."""


def sanitize_usage(reply: MutableMapping[str, object]) -> None:
    """Replace a reply's ``usage`` by its counts, or by None where that of prompt or completion is impossible.

    Strings, negative numbers, fractions, 2**64 and 1e30 are impossible counts; the call's usage is then unknown. In a
    stream of Groq's it stands under ``x_groq``.
    """
    if reply.get("usage") is None and isinstance(besides := reply.get("x_groq"), dict):
        reply["usage"] = besides.get("usage")
    if reply.get("usage") is None:
        return
    usage = reply["usage"]
    known = usage if isinstance(usage, dict) else {}
    prompt, completion = possible_count(known.get("prompt_tokens")), possible_count(known.get("completion_tokens"))
    if prompt is None or completion is None:
        reply["usage"] = None
    else:
        total = prompt + completion
        counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
        details = known.get("prompt_tokens_details")
        cached = possible_count(details.get("cached_tokens")) if isinstance(details, dict) else None
        reply["usage"] = {**counts, "prompt_tokens_details": {"cached_tokens": cached}} if cached else counts


def cached_tokens_in(used: UsageMetadata | None) -> int:
    """Return the prompt tokens that an endpoint says it read from its cache; 0 where it says none."""
    details = used.get("input_token_details") if used else None
    return (possible_count(details.get("cache_read")) if isinstance(details, dict) else None) or 0


def possible_usage(told: object) -> UsageMetadata | None:
    """Return the usage that a user's own model reports; None if it reports none, or an impossible count.

    >>> possible_usage({"input_tokens": 10**30, "output_tokens": 1, "total_tokens": 1}) is None
    True
    """
    known = told if isinstance(told, dict) else {}
    prompt, completion = possible_count(known.get("input_tokens")), possible_count(known.get("output_tokens"))
    if prompt is None or completion is None:
        return None
    usage = UsageMetadata(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)
    if cached := cached_tokens_in(cast("UsageMetadata", known)):
        usage["input_token_details"] = InputTokenDetails(cache_read=cached)
    return usage


def usage_in(reply: Mapping[str, Any]) -> UsageMetadata | None:
    """Return the usage of a reply, or of a piece of its stream, that ``sanitize_usage`` has read; None without."""
    if (usage := reply.get("usage")) is None:
        return None
    prompt, completion, total = (usage[f"{kind}_tokens"] for kind in ("prompt", "completion", "total"))
    used = UsageMetadata(input_tokens=prompt, output_tokens=completion, total_tokens=total)
    if details := usage.get("prompt_tokens_details"):
        used["input_token_details"] = InputTokenDetails(cache_read=details["cached_tokens"])
    return used


NO_TOKENS = UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
"""Usage of a reply that began, where the endpoint has reported none."""


@contextmanager
def attach_usage(usage: UsageMetadata | None) -> Iterator[None]:
    """Let an error on a reply tell the usage of the reply, which was paid, besides what it tells already."""
    try:
        yield
    except Exception as error:
        if usage is not None:
            vars(error)[_TOLD] = add_usage(attached_usage(error), usage)
        raise


def attached_usage(error: Exception) -> UsageMetadata | None:
    """Return the usage of the replies that an error is about, as ``attach_usage`` has noted it; None if it is unknown.

    >>> try:
    ...     with attach_usage(UsageMetadata(input_tokens=700, output_tokens=60, total_tokens=760)):
    ...         raise ValueError("the answer is empty")
    ... except ValueError as error:
    ...     attached_usage(error)["input_tokens"]
    700
    """
    told: UsageMetadata | None = vars(error).get(_TOLD)
    return told
