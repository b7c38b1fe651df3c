"""The usage that an endpoint reports with a reply, as far as it is possible."""

from __future__ import annotations

from collections.abc import MutableMapping

_MOST_TOKENS = 1_000_000_000
"""More than any model reads or writes; a larger count is an error of the endpoint."""


def keep_known_usage(reply: MutableMapping[str, object]) -> None:
    """Replace a reply's ``usage`` by its two counts and their sum, or by None where a count is impossible.

    Strings, negative numbers, fractions, 2**64 and 1e30 are impossible counts; the call's usage is then unknown.
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
