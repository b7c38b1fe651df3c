"""Claims on questions: one process at a time has one, and what a dead one had becomes free."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.rows.store import Place, RowTail, RunRow, RunStore
from judgetree.evaluation.runs.claims import Claims, WorkList, can_share, claim_name, open_claims
from judgetree.evaluation.runs.jobs import Chain, Job, chains_of
from judgetree.modules.errors import SettingsError
from judgetree.modules.locks.postgres import advisory_key
from judgetree.modules.settings import load_settings
from tests.eval.run_rows import run_row

places = st.tuples(st.text(), st.text(), st.integers(0, 9))


@dataclass(kw_only=True, eq=False)
class Desk(Claims):
    """Claims of one worker; workers of one process share ``taken``."""

    taken: dict[Place, object] = field(default_factory=dict)

    async def take(self, place: Place) -> bool:
        return self.taken.setdefault(place, self) is self

    async def free(self, place: Place) -> None:
        assert self.taken.pop(place) is self


def chains(count: int) -> list[Chain]:
    questions = [EvalQuestion(id=f"q{number}", question="?", answers=()) for number in range(count)]
    jobs = [Job(system="naive", question=question, repeat=0, attempt=0) for question in questions]
    return chains_of(jobs, by_dialogue=False)


def never(*_: object) -> bool:
    return False


def row(place: Place) -> RunRow:
    system, question_id, repeat = place
    return run_row(system=system, question_id=question_id, repeat=repeat)


def key_of(run_id: str, place: Place) -> int:
    return advisory_key(claim_name(run_id, place))


@given(places, places)
def test_places_are_locked_under_signed_numbers_of_their_own(one: Place, other: Place) -> None:
    assert -(2**63) <= key_of("run", one) < 2**63
    assert (key_of("run", one) == key_of("run", other)) == (one == other)
    assert key_of("run", one) != key_of("another", one)


def test_workers_of_two_processes_do_each_job_once(tmp_path: Path) -> None:
    taken: dict[Place, object] = {}
    store, asked = RunStore(tmp_path), []

    async def process() -> None:
        tail, written = RowTail(store), dict[Place, RunRow]()

        def is_done(chain: Chain) -> bool:
            written.update((row.place, row) for row in tail.read_new())
            return chain.is_done(written)

        work = WorkList(chains(9), Desk(taken=taken), is_done=is_done, is_over=never)
        while (chain := await work.take()) is not None:
            asked.append(chain.place)
            await asyncio.sleep(0)  # lets the other one in
            with store.appending():
                store.append(row(chain.place))
            await work.finish(chain)

    async def both() -> None:
        await asyncio.gather(process(), process())

    asyncio.run(both())
    assert sorted(asked) == [chain.place for chain in chains(9)]
    assert taken == {}


def test_job_of_another_process_is_waited_for_and_done_if_that_one_dies() -> None:
    async def scenario() -> list[Place]:
        other = Desk()
        await other.take(("naive", "q0", 0))
        work = WorkList(chains(2), Desk(taken=other.taken), is_done=never, is_over=never)
        first = await work.take()
        waiting = asyncio.ensure_future(work.take())
        assert not (await asyncio.wait([waiting], timeout=0.05))[0], "it must not give up what is left"
        await other.free(("naive", "q0", 0))
        second = await waiting
        assert await work.take() is None
        assert first is not None
        assert second is not None
        return [first.place, second.place]

    assert asyncio.run(scenario()) == [("naive", "q1", 0), ("naive", "q0", 0)]


def test_nothing_is_given_once_it_is_over() -> None:
    async def taken() -> object:
        return await WorkList(chains(3), Desk(), is_done=never, is_over=lambda: True).take()

    assert asyncio.run(taken()) is None


@pytest.mark.parametrize(
    ("milvus", "checkpoints", "shares"),
    [
        ("http://127.0.0.1:19530", "postgresql://ada@localhost/trees", True),
        ("http://127.0.0.1:19530", "sqlite:///trees.sqlite", False),
        ("folder.db", "postgresql://ada@localhost/trees", False),
        ("", "", False),
    ],
)
def test_work_is_shared_over_two_servers_only(milvus: str, checkpoints: str, shares: bool) -> None:
    assert can_share(load_settings(milvus_uri=milvus, checkpoints=checkpoints)) is shares


def test_directory_is_shared_among_those_who_share_and_with_nobody_else(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    alone = pytest.raises(SettingsError, match=r"process \d+ on .*JUDGETREE_CHECKPOINTS")
    with store.held(shared=True), RunStore(tmp_path).held(shared=True), alone, store.held():
        pass
    with store.held(), pytest.raises(SettingsError, match=r"process \d+ on "), store.held(shared=True):
        pass
    with store.held():
        pass


def test_row_behind_the_torn_end_of_a_killed_process_stands_alone(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    tail = RowTail(store)
    with store.appending():
        store.append(row(("naive", "q0", 0)))
    with store.rows_file.open("ab") as file:
        file.write(b'{"system":"nai')
    assert [each.question_id for each in tail.read_new()] == ["q0"]
    with store.appending():
        store.append(row(("naive", "q1", 0)))
    assert [each.question_id for each in tail.read_new()] == ["q1"]
    assert tail.read_new() == []
    assert [each.question_id for each in store.read_attempts()] == ["q0", "q1"]


def test_claims_in_postgres_are_one_connection_s_and_end_with_it(postgres_url: str) -> None:
    settings = load_settings(milvus_uri="http://127.0.0.1:19530", checkpoints=postgres_url)
    here, there = ("judge", "q", 0), ("judge", "p", 0)

    async def scenario() -> None:
        async with open_claims(settings, "run") as first:
            assert await first.take(here)
            async with open_claims(settings, "run") as second, open_claims(settings, "another run") as stranger:
                assert not await second.take(here)
                assert await second.take(there)
                assert await stranger.take(here)
                await first.free(here)
                assert await second.take(here)
                assert not await first.take(here)
            assert await first.take(here), "closed without having freed it"

    asyncio.run(scenario())


def test_claims_that_are_lost_end_the_work(postgres_url: str) -> None:
    from psycopg import AsyncConnection

    settings = load_settings(milvus_uri="http://127.0.0.1:19530", checkpoints=postgres_url)
    ended: list[str] = []

    async def ask(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(f"question {number}")

    async def scenario() -> None:
        async with open_claims(settings, "run") as claims, asyncio.TaskGroup() as questions:
            for number in range(2):
                assert await claims.take(("judge", f"q{number}", 0))
                questions.create_task(ask(number))
            async with await AsyncConnection.connect(postgres_url, autocommit=True) as connection:
                query = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND granted"
                await connection.execute(query)

    async def whole() -> bool:
        with pytest.raises(SettingsError, match=r"does not answer any more.*Finished rows are kept"):
            await scenario()
        await asyncio.sleep(0)  # raises where a cancellation is left over
        async with open_claims(settings, "run") as claims:
            return await claims.take(("judge", "q0", 0))

    assert asyncio.run(whole())
    assert sorted(ended) == ["question 0", "question 1"]
