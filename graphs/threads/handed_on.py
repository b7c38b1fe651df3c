"""What of a thread's answer the questions above it may rest on."""

from __future__ import annotations

from collections.abc import Iterable

from ...modules.calls.record import CallRecord

ANSWERING_NODE = "generate"
"""The node whose newest call wrote the answer of a thread."""


def handed_on(answer: str, usage: Iterable[CallRecord]) -> str:
    """Return the answer of a thread with these calls; ``""`` where the endpoint ended its reply before the model did.

    What a filter or a limit of length has cut in the middle may say the opposite of the whole: "999 °C is" not the
    limit.
    """
    written = [record for record in usage if record["node"] == ANSWERING_NODE and not record["error"]]
    return "" if written and written[-1]["cut_off"] else answer
