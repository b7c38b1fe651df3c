"""Requests to the server made up from its own description, right and wrong ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judgetree.app.server.serving.options import ServerOptions
from tests.app.server.fuzzing import Failed, Fuzzing
from tests.app.server.serving import serving

from .corpus import scripted_standards
from .measurement import Row

CASES = 10_000
MOST_ROUNDS = 20
OPTIONS = ServerOptions(requests_per_minute=1_000_000)
"""Usual options, but for a sender that is faster than people."""


def rows_of(sent: int, failed: Sequence[Failed], wanted: int) -> list[Row]:
    """Return the table, with a row for each operation that failed and its first failure."""
    errors = sum(each.is_server_error for each in failed)
    first: dict[str, Failed] = {}
    for each in failed:
        first.setdefault(each.operation, each)
    counts = Counter(each.operation for each in failed)
    return [
        Row("made-up requests to all operations", f"{sent}", f"≥ {wanted}", holds=sent >= wanted),
        Row("server errors, or no answer", f"{errors}", "0", holds=errors == 0),
        Row("answers other than described", f"{len(failed) - errors}", "0", holds=len(failed) == errors),
        *(
            Row(f"{operation}: {counts[operation]} failures, the first", " ".join(each.words.split()), "none", False)
            for operation, each in first.items()
        ),
    ]


def measure(cases: int = CASES) -> list[Row]:
    """Send requests in rounds, until they are enough: an operation with few possible ones repeats none in a round."""
    with scripted_standards(embeddings="local:use", retries=0) as (_, settings), serving(settings, OPTIONS) as address:
        fuzzing, sent = Fuzzing(address=address), 0
        for number in range(MOST_ROUNDS):
            if sent >= cases:
                break
            sent += fuzzing.fuzz(cases=cases - sent, seeded=number)
    return rows_of(sent, fuzzing.failed, cases)
