"""What an endpoint bills, whatever it replies, is what the books of a call have, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.limits import Spending
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.budget import CallBudget
from judgetree.modules.calls.ledger import Ledger
from judgetree.modules.calls.prices import Prices
from judgetree.modules.calls.usage import CallMeter, total_usage
from judgetree.modules.errors import ModelCallError
from tests.modules.model_endpoints import QUESTION, llm_at

from .bills import FAILURES, Bill

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
    budget = CallBudget(limit=5, ledger=Ledger(prices=Prices({}), max_tree_tokens=10_000))
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
    assert budget.ledger is not None
    booked = sum((each for each in spending.open_payments.values()), start=budget.ledger.used)
    assert (booked.calls, booked.tokens) == (2 * bill.requests, 2 * bill.tokens), "of the tree and of the run"
    assert (budget.used, total_usage(meter.records)["llm_calls"]) == (bill.requests, bill.requests)
