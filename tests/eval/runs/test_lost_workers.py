"""Workers that die, are silent or are interrupted, without a Ray: a run says why it ends, and why it waits."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import cast

import pytest

from judgetree.evaluation.runs.job_workers import MOST_DEATHS, MOST_OPENINGS, JobWorkers, WorkerHandle, finish_opening
from judgetree.evaluation.runs.jobs import Job
from judgetree.evaluation.runs.limits import Spending
from judgetree.evaluation.runs.worker import NotOpened, Worker, WorkOrder
from judgetree.modules.errors import UserError


class Died(Exception):
    """A worker has died."""


async def die(*_: object) -> object:
    raise Died("killed")


async def stop(*_: object) -> None:
    """Answer as a worker does once a limit is reached."""


def crew_that_dies(openings: list[object], ledger: object = None) -> JobWorkers:
    async def reopen(holder: str) -> object:
        outcome = openings.pop(0)
        if isinstance(outcome, Died):
            raise outcome
        return outcome

    async def no_time(seconds: float) -> None:
        await asyncio.sleep(0)

    hand = WorkerHandle(SimpleNamespace(ask=SimpleNamespace(remote=die)), reopen)
    return JobWorkers(
        [hand], ledger, (Died,), lambda job: (), cast(Spending, SimpleNamespace(adopt=None)), sleep=no_time
    )


def ask(crew: JobWorkers) -> object:
    job = cast(Job, SimpleNamespace(question=SimpleNamespace(id="q1"), system="judge"))
    return asyncio.run(asyncio.wait_for(crew.ask(job), 60))


def test_a_worker_that_cannot_open_again_ends_the_run_with_the_reason() -> None:
    with pytest.raises(UserError, match="PostgreSQL is gone"):
        ask(crew_that_dies([UserError("PostgreSQL is gone.")] * MOST_OPENINGS))
    with pytest.raises(UserError, match=r"none could take its place: killed. Finished rows are kept"):
        ask(crew_that_dies([Died("killed")] * MOST_OPENINGS))


def test_a_ledger_that_died_ends_the_run() -> None:
    ledger = SimpleNamespace(release=SimpleNamespace(remote=die), standing=SimpleNamespace(remote=die))
    with pytest.raises(UserError, match="none could take its place"):
        ask(crew_that_dies([], ledger))
    crew = crew_that_dies([], ledger)
    crew.hands[0].actor.ask.remote = stop
    with pytest.raises(UserError, match="counts what all workers spend has died"):
        ask(crew)


def test_a_question_goes_to_the_workers_that_take_the_places_of_the_dead() -> None:
    openings: list[object] = [Died("killed"), UserError("not yet"), None, None, None, None, None]
    with pytest.raises(UserError, match="5 workers died while they asked the question 'q1' of judge, and others"):
        ask(crew_that_dies(openings))


def test_a_worker_that_was_started_anew_between_two_questions_is_opened_before_it_is_asked() -> None:
    answers = [NotOpened(), None]
    asked: list[object] = []

    async def answer(*given: object) -> object:
        asked.append(given)
        return answers.pop(0)

    openings: list[object] = [None]
    crew = crew_that_dies(openings)
    crew.hands[0].actor.ask.remote = answer
    assert ask(crew) is None
    assert (len(asked), answers, openings) == (2, [], [])
    assert isinstance(asyncio.run(Worker().ask(cast(Job, None), ())), NotOpened)


def open_with(outcomes: list[object]) -> list[float]:
    """Return how long was waited before the openings after deaths."""
    waits: list[float] = []

    def get(answer: object) -> UserError | None:
        if isinstance(answer, Died):
            raise answer
        return cast("UserError | None", answer)

    hand = WorkerHandle(None, lambda holder: outcomes.pop(0))
    finish_opening(hand, outcomes.pop(0), get, (Died,), waits.append)
    return waits


def test_a_worker_that_dies_while_it_opens_is_opened_again_but_not_for_ever() -> None:
    assert open_with([None]) == []
    assert open_with([Died("killed"), Died("restarting"), None]) == [2.0, 4.0]
    with pytest.raises(UserError, match=r"died 5 times while it opened .*: killed\. Run"):
        open_with([Died("killed")] * MOST_DEATHS)
    with pytest.raises(UserError, match="no such index"):
        open_with([Died("killed"), UserError("no such index")])


def test_a_worker_that_does_not_answer_is_named_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    answers = ["Process 7 on here", None, None, "Process 7 on here", None, None]

    async def ping() -> str:
        return answers.pop(0) or await asyncio.Future()

    hands = [WorkerHandle(SimpleNamespace(ping=SimpleNamespace(remote=remote)), die) for remote in (ping, die)]
    crew = crew_that_dies([])
    crew.hands, crew.patience_s = hands, 0.01
    with pytest.raises(IndexError, match="pop from empty list"):
        asyncio.run(asyncio.wait_for(crew.watch(), 60))
    said = [record.getMessage() for record in caplog.records]
    assert [each.startswith("Process 7 on here, a worker, has not answered") for each in said] == [True, True]
    assert "another one asks them again" in said[0]


class Interrupting:
    """An asking, or an order, of which a part of one's own raises KeyboardInterrupt."""

    async def ask(self, job: Job) -> None:
        raise KeyboardInterrupt("by hand")

    @property
    def settings(self) -> object:
        raise KeyboardInterrupt("by hand")


@pytest.mark.parametrize("call", ["open", "ask"])
def test_a_part_that_raises_keyboard_interrupt_in_a_worker_is_named_and_does_not_stop_rays_loop(call: str) -> None:
    async def outcome() -> object:
        worker = Worker()
        if call == "open":
            return await worker.open(cast(WorkOrder, Interrupting()), 1, None, "holder")
        worker._asking = Interrupting()
        return await worker.ask(cast(Job, SimpleNamespace(question=SimpleNamespace(id="q1"), system="judge")), ())

    # On a thread, as Ray has its loop: there nothing catches what stops the loop.
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(asyncio.run, outcome()).result(timeout=60)
    assert isinstance(found, UserError)
    assert "raised KeyboardInterrupt" in str(found)
    assert ("'q1' of judge" in str(found)) == (call == "ask")
