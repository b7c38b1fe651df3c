"""One turn at a time for each conversation, in a process and between processes, whatever happens to who holds it."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import ParamSpec

import pytest

from judgetree.graphs.threads.checkpoints import locks_of
from judgetree.modules.errors import ConversationBusy, SettingsError, StoreFailure
from judgetree.modules.locks.locks import Holder, Locks

P = ParamSpec("P")


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a store that several processes share."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'new folder' / 'c.sqlite'}"
    return str(request.getfixturevalue(f"{request.param}_url"))


@asynccontextmanager
async def opened(url: str = "memory:") -> AsyncIterator[Locks]:
    """The locks of a process; those of a shared store exclude each other as two processes do."""
    locks = locks_of(url, check_every_s=0.01)
    async with asyncio.timeout(60):
        try:
            yield locks
        finally:
            await locks.aclose()


async def is_free(locks: Locks, conversation_id: str) -> bool:
    try:
        async with locks.hold(conversation_id, wait=False):
            return True
    except ConversationBusy:
        return False


async def take_turn(locks: Locks, conversation_id: str) -> None:
    async with locks.hold(conversation_id):
        pass


def on_a_loop(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Run a coroutine as a test."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def run_until_blocked() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


# --- in a process ---


@on_a_loop
async def test_turns_of_a_conversation_take_place_in_order() -> None:
    told: list[str] = []
    async with opened() as locks, asyncio.TaskGroup() as turns:

        async def turn(name: str) -> None:
            async with locks.hold("c"):
                told.append(f"{name} begins")
                await run_until_blocked()
                told.append(f"{name} ends")

        for name in "abc":
            turns.create_task(turn(name))
    assert told == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


@on_a_loop
async def test_waiter_who_is_cancelled_leaves_the_line_to_those_behind_it() -> None:
    told: list[str] = []
    async with opened() as locks:

        async def turn(name: str) -> None:
            async with locks.hold("c"):
                told.append(name)

        async with locks.hold("c"):
            waiting = [asyncio.create_task(turn(name)) for name in "abc"]
            await run_until_blocked()
            waiting[1].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert await is_free(locks, "c")
    assert told == ["a", "c"]


@on_a_loop
async def test_who_is_not_to_wait_does_not_overtake_those_who_do() -> None:
    async with opened() as locks:
        async with locks.hold("c"):
            waiting = asyncio.create_task(take_turn(locks, "c"))
            await run_until_blocked()
        with pytest.raises(ConversationBusy, match="'c' is answering another question"):
            async with locks.hold("c", wait=False):
                pass
        await waiting
        assert await is_free(locks, "c")


@on_a_loop
async def test_turn_that_fails_frees_its_conversation() -> None:
    async with opened() as locks:
        with pytest.raises(ZeroDivisionError):
            async with locks.hold("c"):
                raise ZeroDivisionError
        assert await is_free(locks, "c")


@pytest.mark.parametrize("url", ["mysql://x", "sqlite:///", ""])
def test_unknown_store_is_refused_with_those_there_are(url: str) -> None:
    with pytest.raises(SettingsError, match="memory:, sqlite:///"):
        locks_of(url)


# --- between processes ---


@on_a_loop
async def test_conversation_that_is_held_elsewhere_is_waited_for(url: str) -> None:
    async with opened(url) as here, opened(url) as there:
        async with here.hold("c"):
            assert not await is_free(there, "c")
            assert await is_free(there, "d")
            waiting = asyncio.create_task(take_turn(there, "c"))
            assert not (await asyncio.wait([waiting], timeout=0.05))[0], "both have it"
        await waiting


@pytest.mark.parametrize("conversation_id", ["", "a/../b", "汉字\n\N{GRINNING FACE}", "x" * 5000, "\x00", "\ud800"])
@on_a_loop
async def test_any_text_names_a_conversation(url: str, conversation_id: str) -> None:
    async with opened(url) as here, opened(url) as there, here.hold(conversation_id), here.hold("d"):
        assert not await is_free(here, conversation_id)
        assert not await is_free(there, conversation_id)
        assert await is_free(there, f"{conversation_id}.")


@on_a_loop
async def test_cancelled_at_any_moment_nothing_stays_locked(url: str) -> None:
    async with opened(url) as here, opened(url) as there:

        async def turn() -> None:
            async with here.hold("c"):
                await asyncio.Event().wait()

        assert await is_free(here, "c"), "this opens the connection"
        for steps in range(0, 150, 3):  # from before it asks until after it has it
            task = asyncio.create_task(turn())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert await is_free(there, "c"), f"cancelled after {steps} steps of the loop, it stays locked"


@on_a_loop
async def test_waiter_for_another_process_that_is_cancelled_takes_nothing(url: str) -> None:
    async with opened(url) as here, opened(url) as there:
        async with here.hold("c"):
            waiting = asyncio.create_task(take_turn(there, "c"))
            await asyncio.wait([waiting], timeout=0.05)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert waiting.cancelled()
        assert await is_free(here, "c")
        assert await is_free(there, "c")


def test_locks_leave_no_file_behind(tmp_path: Path) -> None:
    def files() -> list[Path]:
        return list(tmp_path.rglob("*.lock"))

    async def scenario() -> int:
        async with opened(f"sqlite:///{tmp_path / 'c.sqlite'}") as locks, locks.hold("c"):
            return len(files())

    assert asyncio.run(scenario()) == 1
    assert files() == []


@on_a_loop
async def test_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "c.sqlite.turns").write_text("in the way")

    with pytest.raises(SettingsError, match=r"c\.sqlite\.turns.*Make it writable"):
        async with opened(f"sqlite:///{tmp_path / 'c.sqlite'}") as locks, locks.hold("c"):
            pass


HOLDER = """
import asyncio, sys
from judgetree.graphs.threads.checkpoints import locks_of

async def main():
    async with locks_of(sys.argv[1]).hold("c"):
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def holder(url: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the conversation c."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, url], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


@on_a_loop
@pytest.mark.slow
async def test_killed_process_frees_what_it_held(url: str) -> None:
    with holder(url) as process:
        async with opened(url) as locks:
            assert not await is_free(locks, "c")
            waiting = asyncio.create_task(take_turn(locks, "c"))
            await run_until_blocked()
            process.kill()
            await waiting


# --- PostgreSQL ---

LOCKING = "FROM pg_locks WHERE locktype = 'advisory' AND granted"


async def ask_postgres(url: str, query: str) -> list[tuple[object, ...]]:
    from psycopg import AsyncConnection

    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        return await (await connection.execute(query)).fetchall()  # type: ignore[arg-type]


@on_a_loop
async def test_fifty_conversations_are_held_over_one_connection(postgres_url: str) -> None:
    async with opened(postgres_url) as locks, AsyncExitStack() as turns:
        for number in range(50):
            await turns.enter_async_context(locks.hold(f"c{number}"))
        counts = await ask_postgres(postgres_url, f"SELECT count(*), count(DISTINCT pid) {LOCKING}")
    assert counts == [(50, 1)]


async def end_sessions(url: str) -> None:
    await ask_postgres(url, f"SELECT pg_terminate_backend(pid, 5000) {LOCKING}")


@on_a_loop
async def test_turn_whose_lock_is_lost_is_ended_and_told(postgres_url: str) -> None:
    ended = False
    async with opened(postgres_url) as locks:
        with pytest.raises(StoreFailure, match=r"does not answer any more.*JUDGETREE_CHECKPOINTS"):
            async with locks.hold("c"):
                try:
                    await end_sessions(postgres_url)
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    ended = True
                    raise
        await asyncio.sleep(0)  # raises where a cancellation is left over
        assert await is_free(locks, "c"), "it does not connect again"
    assert ended


@on_a_loop
async def test_turn_that_ends_as_its_lock_is_lost_is_told_too(postgres_url: str) -> None:
    with pytest.raises(SettingsError, match="does not answer any more"):
        locks = locks_of(postgres_url, check_every_s=60)
        async with locks.hold("c"):
            await end_sessions(postgres_url)
            # nobody looks before the end


@on_a_loop
async def test_connection_lost_between_two_turns_is_opened_again(postgres_url: str) -> None:
    async with opened(postgres_url) as locks, opened(postgres_url) as other:
        async with locks.hold("c"):
            pass
        await ask_postgres(
            postgres_url,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
        )
        async with locks.hold("c", wait=False):
            assert not await is_free(other, "c")


@on_a_loop
async def test_locks_that_are_closed_end_who_holds_one(postgres_url: str) -> None:
    with pytest.raises(SettingsError, match="closed while one was held"):
        async with opened(postgres_url) as locks, locks.hold("c"):
            await locks.aclose()
            await asyncio.Event().wait()


@on_a_loop
async def test_unreachable_postgres_is_named_without_its_password() -> None:
    pytest.importorskip("psycopg")

    with pytest.raises(SettingsError, match=r"postgresql://127\.0\.0\.1:1/db") as caught:
        async with opened("postgresql://user:hunter2@127.0.0.1:1/db") as locks, locks.hold("c"):
            pass
    assert "hunter2" not in str(caught.value)


# --- a lock that is lost ---


@pytest.mark.parametrize("awaits", [True, False])
@on_a_loop
async def test_loss_comes_out_as_its_error_also_where_the_work_does_not_wait(awaits: bool) -> None:
    hold = Holder()
    with pytest.raises(SettingsError, match="gone"):
        async with hold.ending_when_lost():
            hold.lose(SettingsError("gone"))
            if awaits:
                await asyncio.Event().wait()
    await asyncio.sleep(0)  # raises where the cancellation is left over


@on_a_loop
async def test_cancellation_by_others_stays_one_when_the_lock_is_lost_too() -> None:
    with pytest.raises(asyncio.CancelledError):
        hold = Holder()
        async with hold.ending_when_lost():
            hold.lose(SettingsError("gone"))
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.Event().wait()
