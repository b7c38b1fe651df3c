"""Connections to PostgreSQL that give up waiting: a server that hangs keeps them open and says nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from psycopg import AsyncConnection, Connection, OperationalError
from psycopg.abc import PQGen
from psycopg.rows import Row

RV = TypeVar("RV")

CONNECT_TIMEOUT_S = 10
_LIMIT_S: ContextVar[float] = ContextVar("postgres_answer_s", default=30.0)
"""Seconds of silence after which a statement is given up, as many as SQLite's writers wait for each other."""
_LOOKS_EVERY_S = 0.1


@contextmanager
def answers_within(seconds: float) -> Iterator[None]:
    """Give the statements inside another limit than 30 seconds."""
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
    """The same for event loops."""

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
    """Pass on what psycopg and the generator of a statement say to each other, and give up in a silence."""
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
