"""The tokens that an endpoint says a call used: whole numbers that can be, or none."""

from __future__ import annotations

from collections.abc import MutableMapping

_MOST_TOKENS = 1_000_000_000
"""More than any model takes in or gives; more is a mistake of the endpoint's."""


def keep_known_usage(reply: MutableMapping[str, object]) -> None:
    """Replace the reply's ``usage`` by its two counts and their sum; by None where one of them cannot be.

    Strings, negative numbers, fractions, 2**64 and 1e30 are among what cannot be: such a call's usage is unknown.
    """
    if reply.get("usage") is None:
        return
    usage = reply["usage"]
    known = usage if isinstance(usage, dict) else {}
    prompt, completion = _count(known.get("prompt_tokens")), _count(known.get("completion_tokens"))
    if prompt is None or completion is None:
        reply["usage"] = None
    else:
        total = prompt + completion
        reply["usage"] = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}


def _count(value: object) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _MOST_TOKENS or value != int(value):  # type: ignore[operator, call-overload]
        return None
    return int(value)  # type: ignore[call-overload, no-any-return]
