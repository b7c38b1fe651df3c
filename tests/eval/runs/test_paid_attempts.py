"""What a run pays for replies that cannot be used: it stands in the books, and the limits hold over all starts."""

from __future__ import annotations

import math

import pytest

from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.batch_run import RunOptions
from tests.attacks.billing import FAILURES, Till
from tests.eval.run_bench import RunBench
from tests.eval.runs.test_batch_run import bench

__all__ = ["bench"]

UNUSABLE = sorted(set(FAILURES) - {"error-500", "error-400"})


@pytest.mark.parametrize(("failure", "system"), [*((failure, "naive") for failure in UNUSABLE), (UNUSABLE[0], "judge")])
@pytest.mark.slow
def test_a_limit_of_calls_holds_over_all_starts_of_a_run_whose_questions_fail(
    bench: RunBench, failure: str, system: str
) -> None:
    """Each start counted anew, so that a limit of 5 paid for 20 calls, and the books showed $0.00."""
    settings = bench.settings.model_copy(update={"retries": 1})
    till = bench.server.responses = Till(bench.server, failure)
    for _ in range(4):
        bench.run(
            RunOptions(retry="failed"), settings=settings, systems=(system,), max_calls=5, cache="off", concurrency=3
        )
    assert till.requests <= 5
    rows = RunStore(bench.out).read_attempts()
    assert sum(row.paid_llm_calls for row in rows) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("failure", UNUSABLE)
def test_rows_have_what_the_endpoint_bills(bench: RunBench, failure: str) -> None:
    settings = bench.settings.model_copy(update={"retries": 1})
    till = bench.server.responses = Till(bench.server, failure, fails=lambda number: number % 3 != 0)
    bench.run(settings=settings, cache="off")
    bench.run(RunOptions(retry="failed"), settings=settings, cache="off")
    rows = RunStore(bench.out).read_attempts()
    assert (sum(row.paid_llm_calls for row in rows), sum(row.tokens for row in rows)) == (till.requests, till.tokens)


def test_a_limit_of_tokens_is_exceeded_by_what_was_in_flight_alone(bench: RunBench) -> None:
    till = bench.server.responses = Till(bench.server, "only-thinking")
    for _ in range(3):
        bench.run(RunOptions(retry="failed"), max_tokens=1_000, cache="off", concurrency=4)
    assert till.tokens <= 1_000 + 4 * till.largest
    assert not math.isclose(till.tokens, 0)
