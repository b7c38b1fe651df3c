"""A PostgreSQL that goes away in a turn: a typed error, no half turn, and the next try pays for nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from judgetree.graphs.conversations import Conversations
from judgetree.modules.errors import UserError
from tests.database_servers import postgres_server, require_postgres
from tests.graphs.conversation.talk import CLASS, TalkingLLM, open_conversations, settings_in

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
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_postgres()
    with postgres_server(tmp_path_factory.mktemp("pg")) as url:
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


class _During(TalkingLLM):
    """Does something while it answers for the first time."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._acts = [act]

    def _read(self, query: str, text: str) -> str:
        if self._acts:
            self._acts.pop()()
        return super()._read(query, text)


def _opened(llm: TalkingLLM, url: str, folder: Path) -> Conversations:
    return open_conversations(folder, llm, settings=settings_in(folder, checkpoints=url))


def _answered(talks: Conversations, name: str) -> bool:
    try:
        return talks.conversation(name).ask(CLASS).status == "answered"
    except UserError as error:
        assert len(str(error)) > 30
        return False


@pytest.mark.parametrize("fault", FAULTS)
def test_a_turn_survives_its_store(url: str, tmp_path: Path, fault: str) -> None:
    llm = _During(lambda: _run(url, FAULTS[fault]))
    with _opened(llm, url, tmp_path) as talks:
        was_answered = _answered(talks, fault)
        _run(url, _HEAL)
        # Connections that were broken while idle fail one question at most each.
        assert was_answered or any(_answered(talks, fault) for _ in range(_MOST_CONNECTIONS))
        paid = llm.kinds.count("read")
        turns = talks.conversation(fault).history()
        assert [turn["query"] for turn in turns] == [CLASS]
    assert paid <= 2, "the call that was under way, and one more"


def test_a_server_without_a_free_connection_is_named(url: str, tmp_path: Path) -> None:
    with ExitStack() as held:
        with pytest.raises(psycopg.OperationalError):
            while True:
                held.enter_context(psycopg.connect(url))
        with (
            pytest.raises(UserError, match=r"cannot be used|does not answer"),
            _opened(TalkingLLM(), url, tmp_path) as talks,
        ):
            talks.conversation("full").ask(CLASS)
    with _opened(TalkingLLM(), url, tmp_path) as talks:
        assert talks.conversation("full").ask(CLASS).status == "answered"
        assert len(talks.conversation("full").history()) == 1
