"""Calls are on the disk before they are made, and answered from there by the same call of the same thread alone."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.journal import ACCOUNT, CallJournal, ThreadCalls, thread_calls
from judgetree.modules.calls.journaled import JournaledLLM
from judgetree.modules.calls.record import INTERRUPTED
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import BudgetSpent, ModelCallError, SettingsError
from judgetree.modules.journals.redis import RedisJournal
from judgetree.modules.journals.sql import JOURNAL_TABLES, SqlJournal
from judgetree.modules.storage.postgres import PostgresDatabase
from judgetree.modules.storage.sqlite import SqliteDatabase

T = TypeVar("T")
Opener = Callable[[], CallJournal]


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the journal as a new process would."""
    if request.param == "sqlite":
        return lambda: SqlJournal(lambda: SqliteDatabase(tmp_path / "calls.sqlite", JOURNAL_TABLES))
    if request.param == "redis":
        return redis_journals(request.getfixturevalue("redis_url"))
    url = request.getfixturevalue("postgres_url")
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS judgetree_calls, judgetree_format")
    return lambda: SqlJournal(lambda: PostgresDatabase(url, JOURNAL_TABLES))


def redis_journals(url: str) -> Opener:
    redis = pytest.importorskip("redis")
    with redis.Redis.from_url(url) as client:
        for each in client.scan_iter("judgetree:calls:*"):
            client.delete(each)
    return lambda: RedisJournal(url)


def in_a_life(opened: Opener, work: Callable[[CallJournal], Awaitable[T]]) -> T:
    async def life() -> T:
        journal = opened()
        try:
            return await work(journal)
        finally:
            await journal.aclose()

    return asyncio.run(life())


class Model(JournaledLLM):
    """Says which of its calls a reply is; may fail, or be cut off by the end of its process."""

    model = endpoint = "m"

    def __init__(self, failure: BaseException | None = None) -> None:
        self.calls = 0
        self._failure = failure

    async def _call(self, messages: object, meter: CallMeter, *_: object) -> Completion:
        await meter.about_to_send()
        self.calls += 1
        if self._failure is not None:
            raise self._failure
        meter.record(kind="chat", model="m", started=0.0, prompt_tokens=7, completion_tokens=3)
        return Completion(text=f"{id(self)}-{self.calls}", thinking="", finish_reason="stop")


async def ask(model: Model, meter: CallMeter, asked: str = "What is the flash point?") -> str:
    return (await model.complete([("user", asked)], meter=meter)).text


async def calls_of(journal: CallJournal, thread_id: str = "t") -> ThreadCalls:
    calls = await thread_calls(journal, thread_id)
    assert calls is not None
    return calls


def test_same_calls_of_the_same_thread_are_answered_in_their_order(reopened: Opener) -> None:
    model, later = Model(), Model()

    async def first(journal: CallJournal) -> list[str]:
        meter = CallMeter(node="judge", chunk_id="c", calls=await calls_of(journal))
        return [await ask(model, meter), await ask(model, meter), await ask(model, meter, "How hot?")]

    async def second(journal: CallJournal) -> list[str]:
        budget = TreeBudget(limit=0)
        meter = CallMeter(node="judge", chunk_id="c", budget=budget, calls=await calls_of(journal))
        said = [await ask(later, meter, "How hot?"), await ask(later, meter), await ask(later, meter)]
        assert [record["prompt_tokens"] for record in meter.records] == [7, 7, 7]
        with pytest.raises(BudgetSpent):
            await ask(later, meter)
        return said

    said = in_a_life(reopened, first)
    assert in_a_life(reopened, second) == [said[2], said[0], said[1]]
    assert (model.calls, later.calls) == (3, 0)


@pytest.mark.parametrize(
    "change", [{"node": "generate"}, {"chunk_id": "d"}, {"thread": "below"}, {"root": "u"}, {"asked": "How hot?"}]
)
def test_any_other_call_is_made(reopened: Opener, change: dict[str, str]) -> None:
    model = Model()

    async def one(
        journal: CallJournal,
        root: str = "t",
        thread: str = "t",
        node: str = "judge",
        chunk_id: str = "c",
        asked: str = "",
    ) -> None:
        calls = (await calls_of(journal, root)).of_thread(thread)
        await ask(model, CallMeter(node=node, chunk_id=chunk_id, calls=calls), asked)

    in_a_life(reopened, one)
    in_a_life(reopened, lambda journal: one(journal, **change))
    assert model.calls == 2


def test_call_that_was_in_flight_is_made_and_booked_again(reopened: Opener) -> None:
    """Twice in a row the process ends before the reply; the books of the third have three calls."""

    async def cut_off(journal: CallJournal) -> None:
        with pytest.raises(asyncio.CancelledError):
            await ask(Model(asyncio.CancelledError()), CallMeter(node="judge", calls=await calls_of(journal)))

    async def third(journal: CallJournal) -> list[tuple[str, bool]]:
        meter = CallMeter(node="judge", calls=await calls_of(journal))
        await ask(Model(), meter)
        return [(record["error"], record["estimated"]) for record in meter.records]

    async def booked(journal: CallJournal) -> list[int]:
        return [len(call.records) for call in (await journal.calls_of("t")).values()]

    for _ in range(2):
        in_a_life(reopened, cut_off)
    assert in_a_life(reopened, booked) == [2]
    assert in_a_life(reopened, third) == [(INTERRUPTED, True), (INTERRUPTED, True), ("", False)]
    assert in_a_life(reopened, booked) == [3]


def test_call_that_failed_is_made_again(reopened: Opener) -> None:
    async def failed(journal: CallJournal) -> None:
        meter = CallMeter(node="judge", calls=await calls_of(journal))
        model = Model(ModelCallError("HTTP 500"))
        with pytest.raises(ModelCallError):
            await ask(model, meter)
        assert await journal.calls_of("t") == {}

    in_a_life(reopened, failed)


def test_finished_threads_and_closed_books_are_forgotten(reopened: Opener) -> None:
    async def life(journal: CallJournal) -> None:
        ACCOUNT.set("question")
        await ask(Model(), CallMeter(node="judge", calls=await calls_of(journal, "booked")))
        ACCOUNT.set("")
        for root in ("finished", "open"):
            await ask(Model(), CallMeter(node="judge", calls=await calls_of(journal, root)))
        await journal.forget(["finished", "booked"])
        assert [len(await journal.calls_of(root)) for root in ("booked", "finished", "open")] == [1, 0, 1]
        assert [call.account for call in await journal.booked_calls()] == ["question"]
        assert await journal.booked_calls("question") == await journal.booked_calls()
        assert await journal.booked_calls("another") == []
        await journal.delete_accounts({"question"})
        assert await journal.booked_calls() == []

    in_a_life(reopened, life)


def test_calls_wait_for_another_writer_and_share_commits(tmp_path: Path) -> None:
    file, commits = tmp_path / "calls.sqlite", 0

    class Counting(SqliteDatabase):
        def write(self, statements: object) -> None:
            nonlocal commits
            commits += 1
            super().write(statements)  # type: ignore[arg-type]

    async def life(journal: CallJournal) -> None:
        calls = await calls_of(journal)
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            asked = [
                asyncio.ensure_future(ask(Model(), CallMeter(node="judge", chunk_id=str(n), calls=calls)))
                for n in range(50)
            ]
            _, still_waiting = await asyncio.wait(asked, timeout=0.2)
            assert len(still_waiting) == 50, "calls were made that were not written down"
            other.execute("COMMIT")
        await asyncio.gather(*asked)
        assert len(await journal.calls_of("t")) == 50

    in_a_life(lambda: SqlJournal(lambda: Counting(file, JOURNAL_TABLES)), life)
    assert commits < 25, "100 writes and the tables"


def test_long_log_is_moved_into_the_file(tmp_path: Path) -> None:
    async def life(journal: CallJournal) -> None:
        calls = await calls_of(journal)
        for number in range(800):
            await ask(Model(), CallMeter(node="judge", chunk_id=str(number), calls=calls))
        assert (tmp_path / "calls.sqlite-wal").stat().st_size < 10_000_000
        assert (tmp_path / "calls.sqlite").stat().st_size > 500_000

    in_a_life(lambda: SqlJournal(lambda: SqliteDatabase(tmp_path / "calls.sqlite", JOURNAL_TABLES)), life)


def test_journal_that_cannot_be_used_lets_no_call_be_made(tmp_path: Path) -> None:
    (tmp_path / "calls.sqlite").mkdir()
    model = Model()

    async def life(journal: CallJournal) -> None:
        calls = ThreadCalls(journal=journal, root="t", thread_id="t")
        with pytest.raises(SettingsError, match="No model is called without it"):
            await ask(model, CallMeter(node="judge", calls=calls))

    in_a_life(lambda: SqlJournal(lambda: SqliteDatabase(tmp_path / "calls.sqlite", JOURNAL_TABLES)), life)
    assert model.calls == 0


def test_journal_of_another_format_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "calls.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE format (format TEXT PRIMARY KEY)")
        connection.execute("INSERT INTO format VALUES ('judgetree-call-journal/1')")
        connection.commit()
    with pytest.raises(SettingsError, match=r"calls\.sqlite has the format 'judgetree-call-journal/1'"):
        in_a_life(
            lambda: SqlJournal(lambda: SqliteDatabase(file, JOURNAL_TABLES)), lambda journal: journal.calls_of("t")
        )
