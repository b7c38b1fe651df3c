"""A PostgreSQL that goes away in a turn: a typed error, no half turn, and the next try pays for nothing twice."""

from __future__ import annotations

import asyncio
import re
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig

from judgetree.graphs.conversations import Conversations
from judgetree.graphs.threads.checkpoints import open_checkpointer
from judgetree.modules.errors import StoreFailure, UserError
from judgetree.modules.journals.sql import JOURNAL_TABLES
from judgetree.modules.storage.postgres import AnsweringConnection, PostgresDatabase, answers_within
from tests.attacks.failing_turns import During, is_answered, opened
from tests.database_servers import postgres_server, require_postgres
from tests.graphs.conversation.talk import CLASS, TalkingLLM

_MOST_CONNECTIONS = 8
"""Tries after which no pool holds a broken connection any more."""
_OWNER = "-c statement_timeout=0 -c default_transaction_read_only=off"
_TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
_HEAL = (
    "ALTER DATABASE postgres RESET default_transaction_read_only",
    "ALTER DATABASE postgres RESET statement_timeout",
    "ALTER DATABASE postgres ALLOW_CONNECTIONS true",
    _TERMINATE,
)

FAULTS: Mapping[str, Sequence[str]] = {
    "connections-terminated": (_TERMINATE,),
    "became-read-only": ("ALTER DATABASE postgres SET default_transaction_read_only = on", _TERMINATE),
    "statements-time-out": ("ALTER DATABASE postgres SET statement_timeout = 1", _TERMINATE),
    "takes-no-connections": ("ALTER DATABASE postgres ALLOW_CONNECTIONS false", _TERMINATE),
}
"""What its owner, or its failing machine, does while the model answers."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    require_postgres()
    with postgres_server() as url:
        yield url


def _run(url: str, statements: Sequence[str]) -> None:
    other = url.replace("/postgres?", "/template1?")  # from where the attacked database can be closed
    with psycopg.connect(other, autocommit=True, options=_OWNER) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture(autouse=True)
def healed(url: str) -> Iterator[None]:
    yield
    _run(url, _HEAL)


def _holds_the_turn(talks: Conversations, name: str) -> bool:
    try:
        turns = talks.conversation(name).history()
    except UserError as error:
        assert len(str(error)) > 30
        return False
    assert [turn["query"] for turn in turns] == [CLASS]
    return True


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_turn_survives_its_store(url: str, tmp_path: Path, fault: str) -> None:
    llm = During(lambda: _run(url, FAULTS[fault]))
    with opened(llm, url, tmp_path) as talks:
        was_answered = is_answered(talks, fault)
        _run(url, _HEAL)
        # Connections that were broken while idle fail one question or one reading at most each.
        assert was_answered or any(is_answered(talks, fault) for _ in range(_MOST_CONNECTIONS))
        paid = llm.kinds.count("read")
        assert any(_holds_the_turn(talks, fault) for _ in range(_MOST_CONNECTIONS))
    assert paid <= 2, "the call that was under way, and one more"


@pytest.mark.slow
def test_a_server_without_a_free_connection_is_named(url: str, tmp_path: Path) -> None:
    with ExitStack() as held:
        with pytest.raises(psycopg.OperationalError):
            while True:
                held.enter_context(psycopg.connect(url))
        with (
            pytest.raises(UserError, match=r"cannot be used|does not answer"),
            opened(TalkingLLM(), url, tmp_path) as talks,
        ):
            talks.conversation("full").ask(CLASS)
    with opened(TalkingLLM(), url, tmp_path) as talks:
        assert talks.conversation("full").ask(CLASS).status == "answered"
        assert len(talks.conversation("full").history()) == 1


class _Silent:
    """Stands between judgetree and PostgreSQL, and passes on nothing while ``hangs`` is set."""

    def __init__(self, folder: Path, url: str) -> None:
        self.hangs = threading.Event()
        host = url.split("host=")[1]
        self.url = url.replace(host, str(folder))
        self._target = f"{host}/.s.PGSQL.5432"
        self._pairs: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                self._pairs += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                if self.hangs.is_set():
                    return  # swallowed, and both stay open
                other.sendall(data)
            other.close()

    def close(self) -> None:
        for each in [self._listener, *self._pairs]:
            each.close()


@pytest.fixture
def silent(url: str) -> Iterator[_Silent]:
    with tempfile.TemporaryDirectory() as folder, closing(_Silent(Path(folder), url)) as between:
        yield between


def test_a_silent_server_is_given_up_by_threads(silent: _Silent) -> None:
    file = PostgresDatabase(silent.url, JOURNAL_TABLES)
    assert file.read(("SELECT 1", ())) == [(1,)]
    silent.hangs.set()
    with answers_within(0.2):
        with pytest.raises(psycopg.OperationalError, match=r"has not answered for 0\.2 s"):
            file.read(("SELECT 2", ()))
        silent.hangs.clear()
        assert file.read(("SELECT 3", ())) == [(3,)], "over a new connection: no late answer is taken for another's"
        silent.hangs.set()
        with pytest.raises(psycopg.OperationalError, match="has not answered"):
            file.write([("SELECT 4", ()), ("SELECT 5", ())])
    file.close()


@pytest.mark.slow
def test_a_silent_server_is_given_up_by_loops(silent: _Silent) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

    async def use() -> None:
        async with open_checkpointer(silent.url) as saver:
            assert await saver.aget_tuple(config) is None
            silent.hangs.set()
            with answers_within(0.2):
                for work in (saver.aget_tuple(config), saver.adelete_thread("t")):
                    with pytest.raises(StoreFailure, match="has not answered"):
                        await work
                silent.hangs.clear()
                assert await saver.aget_tuple(config) is None

    asyncio.run(use())


def test_a_statement_that_answers_slowly_is_waited_for(url: str) -> None:
    """Each row is longer than what PostgreSQL collects before it sends, so that none is silent for long."""
    slow = "SELECT pg_sleep(0.4), repeat(md5(each::text), 2000) FROM generate_series(1, 5) AS each"
    with answers_within(1.5), AnsweringConnection.connect(url) as connection:
        assert len(connection.execute(slow).fetchall()) == 5


def test_every_connection_of_ours_gives_up_in_a_silence() -> None:
    makes = re.compile(
        r"\b(?:psycopg|(?:Async)?Connection)\.connect\(|ConnectionPool\((?!\s*[^\n]+,\s*connection_class=Async)"
    )
    root = Path(__file__).parents[2]
    sources = [each for folder in ("modules", "graphs", "eval", "app") for each in (root / folder).rglob("*.py")]
    assert [str(each) for each in sources if makes.search(each.read_text(encoding="utf-8"))] == []
