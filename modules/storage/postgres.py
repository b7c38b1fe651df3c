"""Connections to PostgreSQL that give up waiting: a server that hangs keeps them open and says nothing.

The extra ``postgres`` must be installed to import this.
"""

from __future__ import annotations

import re
import selectors
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar

from psycopg import AsyncConnection, Connection, OperationalError
from psycopg.abc import PQGen
from psycopg.rows import Row

from .tables import Statement, Tables

RV = TypeVar("RV")

CONNECT_TIMEOUT_S = 10
_LIMIT_S: ContextVar[float] = ContextVar("postgres_answer_s", default=30.0)
"""Seconds of silence after which a statement is given up, as many as SQLite's writers wait for each other."""
_LOOKS_EVERY_S = 0.1
_PREFIX = "judgetree_"


@contextmanager
def answers_within(seconds: float) -> Iterator[None]:
    """Set the seconds of silence after which the statements inside the block are given up; otherwise 30."""
    token = _LIMIT_S.set(seconds)
    try:
        yield
    finally:
        _LIMIT_S.reset(token)


class AnsweringConnection(Connection[Row]):
    """A connection that is closed, with an ``OperationalError``, where a statement has no answer in time."""

    def wait(self, gen: PQGen[RV], interval: float = _LOOKS_EVERY_S, timeout: float | None = None) -> RV:
        """Let a statement run, see ``psycopg.Connection``."""
        return super().wait(_in_time(gen, self.pgconn.finish), interval, *_given(timeout))


class AsyncAnsweringConnection(AsyncConnection[Row]):
    """Async twin of ``AnsweringConnection``."""

    async def wait(
        self,
        gen: PQGen[RV],
        interval: float = _LOOKS_EVERY_S,
        timeout: float | None = None,  # noqa: ASYNC109 - as psycopg has it
    ) -> RV:
        """Let a statement run, see ``psycopg.AsyncConnection``."""
        return await super().wait(_in_time(gen, self.pgconn.finish), interval, *_given(timeout))


def _given(timeout: float | None) -> tuple[float, ...]:
    return () if timeout is None else (timeout,)  # which older versions of psycopg lack


def _in_time(gen: PQGen[RV], close: Callable[[], None]) -> PQGen[RV]:
    """Drive the generator of a statement; close the connection and raise once the server has been silent too long."""
    limit_s = _LIMIT_S.get()
    heard_at = time.monotonic()
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            now = time.monotonic()
            if ready:
                heard_at = now
            elif now - heard_at > limit_s:
                close()  # the answer may still come, and would be taken for that to the next statement
                raise OperationalError(f"PostgreSQL has not answered for {limit_s:g} s")
            awaited = gen.send(ready)
    except StopIteration as end:
        result: RV = end.value
        return result


def may_be_closed(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Return whether an idle connection has something to read, such as its end, without a round trip."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


class PostgresDatabase:
    """Tables in PostgreSQL, which all machines share."""

    name = "in PostgreSQL"

    def __init__(self, url: str, tables: Tables) -> None:
        """Connect, and create the tables if they are missing.

        Raises:
            SettingsError: They have another format.
        """
        self._url = url
        self._exclusive = tables.exclusive and f"judgetree {tables.thing}"
        self._own_name = re.compile(rf"\b({'|'.join(tables.names)})\b")
        self._connection = self._connect()
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(hashtext('judgetree call journal'))")
            for sql in tables.statements(prefix=_PREFIX, binary="BYTEA"):
                self._connection.execute(sql)
        formats = self.read((f"SELECT * FROM {tables.names[-1]}", ()))  # by no name that could be a table's too
        tables.check_format((found for (found,) in formats), name=self.name)

    def write_at_once(self, statement: Statement) -> bool:
        """Return False: every write waits for the server."""
        return False

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute the statements in one transaction, over a new connection if the server has closed the last."""
        connection, several = self._open(), list(statements)
        # A transaction's own statements would be two more round trips.
        with connection.transaction() if len(several) > 1 else nullcontext():
            if self._exclusive:
                connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self._exclusive,))
            for sql, parameters in several:
                connection.execute(self._translated(sql), parameters)

    def read(self, statement: Statement) -> list[tuple[object, ...]]:
        """Return all rows of a query."""
        sql, parameters = statement
        return self._open().execute(self._translated(sql), parameters).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _translated(self, sql: str) -> str:
        return self._own_name.sub(rf"{_PREFIX}\1", sql).replace("?", "%s")

    def _open(self) -> Connection:
        if self._connection.closed or may_be_closed(self._connection):  # the server was restarted
            self._connection.close()
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        connection = AnsweringConnection.connect(self._url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
        # The server need not wait for its disk: it is the killed client that must lose nothing.
        connection.execute("SET synchronous_commit TO OFF")
        return connection
