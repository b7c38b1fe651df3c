"""What an endpoint bills, whatever it replies, is what the books of a call have, and nothing else."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from judgetree import evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.limits import Spending
from judgetree.evaluation.scoring.models import ScoringOptions
from judgetree.graphs.rag.result import RagResult
from judgetree.graphs.session import RagSession
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.ledger import SpendLimits
from judgetree.modules.calls.prices import Prices
from judgetree.modules.calls.usage import CallMeter, UsageTotals, total_usage
from judgetree.modules.errors import ModelCallError, RunLimitReached, UserError
from judgetree.modules.settings import load_settings
from tests.app.conftest import CHAIN, COLLECTION
from tests.eval.ragas_bench import RagasBench, chunk, row
from tests.eval.run_bench import RunBench
from tests.eval.runs.test_batch_run import bench
from tests.modules.model_endpoints import QUESTION, llm_at

from .bills import FAILURES, Bill

__all__ = ["bench"]

STREAMS = {"whole": False, "streamed": True}


async def _ask(base_url: str, meter: CallMeter, *, is_streamed: bool) -> None:
    """Ask with two further attempts; what comes is for the books."""
    llm = llm_at(base_url, retries=2)
    listeners = {"on_text": lambda delta: None} if is_streamed else {}
    try:
        await llm.complete(QUESTION, meter=meter, **listeners)  # type: ignore[arg-type]
    except ModelCallError:
        return


@pytest.mark.parametrize("name", sorted(set(FAILURES) - {"error-429"}))
@pytest.mark.parametrize("streams", STREAMS)
def test_the_books_of_a_call_are_its_bill(name: str, streams: str) -> None:
    meter = CallMeter(node="generate")
    with ScriptedServer() as server:
        bill = Bill(server, (name,), share=1.0)
        background_loop().run(_ask(server.base_url, meter, is_streamed=STREAMS[streams]))
    used = total_usage(meter.records)
    assert used["prompt_tokens"] + used["completion_tokens"] == bill.tokens
    assert used["llm_calls"] == max(bill.requests, 1), "a call whose attempts were all refused counts as one"


@pytest.mark.parametrize("name", ["error-429", "error-503", "empty"])
def test_a_call_that_is_cancelled_between_attempts_costs_what_was_billed(name: str) -> None:
    """It was booked by an estimate, though no attempt was in flight and none had been billed."""
    budget = TreeBudget(limit=5, ledger=SpendLimits(prices=Prices({}), max_tree_tokens=10_000))
    spending = Spending(Experiment(dataset="standards", max_tokens=10_000), prices=Prices({}))
    meter = CallMeter(node="generate", budget=budget, payer=spending)

    async def ask(base_url: str) -> None:
        waits = asyncio.Event()

        async def sleep(seconds: float) -> None:
            waits.set()
            await asyncio.Event().wait()

        llm = llm_at(base_url, retries=2, sleep=sleep)
        call = asyncio.create_task(llm.complete(QUESTION, meter=meter))
        await waits.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    with ScriptedServer() as server:
        bill = Bill(server, (name,), share=1.0)
        background_loop().run(ask(server.base_url))
    booked = sum((each for each in spending.open_payments.values()), start=budget.ledger.used)
    assert (booked.calls, booked.tokens) == (2 * bill.requests, 2 * bill.tokens), "of the tree and of the run"
    assert (budget.used, total_usage(meter.records)["llm_calls"]) == (bill.requests, bill.requests)


RETRIED = {"retry_failed": True, "cache": "off", "concurrency": 3}
LIMITS: dict[str, dict[str, float]] = {
    "max_calls": {"max_calls": 4},
    "max_tokens": {"max_tokens": 2_000},
    "max_cost": {"max_cost": 2.0},
}
PRICED = '[chat."scripted"]\nprompt = 1000\ncompletion = 1000\n'
"""A tenth of a cent a token."""


def _is_kept(limits: Mapping[str, float], bill: Bill, in_flight: int) -> bool:
    slack = in_flight * bill.largest
    return (
        bill.requests <= limits.get("max_calls", math.inf)
        and bill.tokens <= limits.get("max_tokens", math.inf) + slack
        and bill.tokens / 1000 <= limits.get("max_cost", math.inf) + slack / 1000
    )


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("door", ["score", "ragas"])
def test_scoring_that_fails_again_and_again_keeps_to_its_limit(scoring: RagasBench, door: str, limit: str) -> None:
    """Each start had the whole limit anew."""
    bill = Bill(scoring.server, ("empty", "prose"), share=1.0)
    for _ in range(4):
        if door == "score":
            summary = evaluation.score(
                scoring.folder,
                "llm_correctness",
                ScoringOptions(**RETRIED, **LIMITS[limit]),  # type: ignore[arg-type]
                settings=scoring.settings,
            )
        else:
            summary = scoring.score("faithfulness,answer_correctness", **RETRIED, **LIMITS[limit])
    assert summary.stopped_by.startswith(limit)
    assert summary.calls == 0, "the last start had nothing left"
    assert _is_kept(LIMITS[limit], bill, in_flight=3)
    assert bill.requests > 1


@pytest.fixture
def scoring(tmp_path: Path) -> Iterator[RagasBench]:
    """A finished run of two questions, whose model has a price."""
    with ScriptedServer() as server:
        home = tmp_path / "home"
        home.mkdir()
        (home / "prices.toml").write_text(PRICED)
        settings = load_settings(llm=f"{server.base_url}#scripted", home=home, retries=1)
        bench = RagasBench(server=server, settings=settings, folder=tmp_path / "run")
        bench.begin()
        for system in ("judge", "naive", "ircot"):
            bench.add(row("wall", "It is 40 mm.", system), chunk("Norm A names the drum.", score=1))
            bench.add(row("colour", "Grey", system), chunk("Ladders are painted grey."))
        yield bench


@pytest.mark.parametrize("limit", LIMITS)
def test_a_recording_that_fails_again_and_again_keeps_to_its_limit(bench: RunBench, limit: str) -> None:
    """Each start had the whole limit anew."""
    bench.settings.home.mkdir(exist_ok=True)
    (bench.settings.home / "prices.toml").write_text(PRICED)
    settings = bench.settings.model_copy(update={"retries": 1})
    bill = Bill(bench.server, ("empty", "prose"), share=1.0)
    experiment = bench.more(systems=("judge",), cache="off", concurrency=3, **LIMITS[limit])
    for _ in range(4):
        with suppress(UserError):
            evaluation.record(experiment, out=bench.out, settings=settings)
    before = bill.requests
    with pytest.raises(RunLimitReached, match=limit):
        evaluation.record(experiment, out=bench.out, settings=settings)
    assert bill.requests == before
    assert _is_kept(LIMITS[limit], bill, in_flight=3)


@pytest.mark.parametrize("name", ["empty", "breaks-off", "error-after-usage"])
def test_the_usage_of_a_question_is_its_bill_in_each_of_its_runs(
    home: Path, scripted: ScriptedServer, name: str
) -> None:
    bill, thread = Bill(scripted, (name,), share=0.6), ""
    with RagSession(COLLECTION, settings=load_settings(retries=1)) as session:
        for _ in range(4):
            before = bill.tokens
            result = session.ask(CHAIN.question, thread_id=thread)
            thread = result.thread_id
            tokens, now = (each["prompt_tokens"] + each["completion_tokens"] for each in _usages(result))
            assert (tokens, now) == (bill.tokens, bill.tokens - before), result.status


def _usages(result: RagResult) -> tuple[UsageTotals, UsageTotals]:
    return result.usage, result.usage_this_run
