"""The table of requests made up from the server's description; ``benchmarks.fuzzing`` sends thousands."""

from __future__ import annotations

import pytest

from benchmarks.fuzzing import measure, rows_of
from tests.app.server.fuzzing import Failed


def test_every_operation_that_failed_is_named_with_its_first_failure() -> None:
    failed = [
        Failed(operation="GET /a", is_server_error=False, words="not\n  as described"),
        Failed(operation="GET /b", is_server_error=True, words="500"),
        Failed(operation="GET /a", is_server_error=False, words="again"),
    ]
    sent, errors, others, *each = rows_of(9, failed, 10)
    assert (sent.holds, errors.holds, others.holds) == (False, False, False)
    assert (errors.measured, others.measured) == ("1", "2")
    assert [(row.what, row.measured) for row in each] == [
        ("GET /a: 2 failures, the first", "not as described"),
        ("GET /b: 1 failures, the first", "500"),
    ]


@pytest.mark.slow
def test_streams_of_answers_are_as_described() -> None:
    """The examples of the description are about this corpus, so that chats are answered."""
    assert [row for row in measure(150) if not row.holds] == []
