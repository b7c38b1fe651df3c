"""The order in which checkpoints were saved to PostgreSQL: a column that the database counts up.

Ids of checkpoints begin with the time of the process that made them, so that a clock that was set back, or another
machine's, would hide what is saved later. The column is filled by its default, so rows of other programs have it too.
Rows that were there before it was added have none: they are older than all others, in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, LiteralString

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow

BY_PLACE: LiteralString = "judgetree_seq DESC NULLS LAST, checkpoint_id DESC"
"""Order of rows, the last saved first."""
NEWEST: LiteralString = (
    f"(SELECT checkpoint_id FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s ORDER BY {BY_PLACE} LIMIT 1)"
)
"""Id of the checkpoint of a thread and namespace that was saved last."""

_HAS_PLACES = "SELECT 1 FROM pg_attribute WHERE attrelid = 'checkpoints'::regclass AND attname = 'judgetree_seq'"
_ADD_PLACES: tuple[LiteralString, ...] = (
    "CREATE SEQUENCE IF NOT EXISTS judgetree_checkpoints_seq",
    "GRANT USAGE ON SEQUENCE judgetree_checkpoints_seq TO PUBLIC",
    "ALTER TABLE checkpoints ADD COLUMN judgetree_seq BIGINT",
    "ALTER TABLE checkpoints ALTER COLUMN judgetree_seq SET DEFAULT nextval('judgetree_checkpoints_seq')",
    "ALTER SEQUENCE judgetree_checkpoints_seq OWNED BY checkpoints.judgetree_seq",
)
Statements = Generator[tuple[str, Any, bool], Any, None]
"""Statements with their values, and whether their rows are sent back."""
_BY_ID = "ORDER BY checkpoint_ns DESC, checkpoint_id DESC"


async def add_places(connection: AsyncConnection[DictRow]) -> None:
    """Add the column unless the table has it; hold the lock of ``setup`` meanwhile."""
    if await (await connection.execute(_HAS_PLACES)).fetchone() is None:
        async with connection.transaction():
            for statement in _ADD_PLACES:
                await connection.execute(statement)


async def earlier_than(
    cursor: AsyncCursor[DictRow], checkpoint_id: str | None, thread_id: str | None
) -> tuple[LiteralString, list[object]]:
    """Return a condition for rows that were saved before a checkpoint, with its values.

    Args:
        cursor: Reads the checkpoint's place.
        checkpoint_id: Id of a checkpoint in any namespace; one that is not saved is compared by its id.
        thread_id: Its thread; None looks through all.
    """
    query: LiteralString = "SELECT max(coalesce(judgetree_seq, 0)) AS place FROM checkpoints WHERE checkpoint_id = %s"
    await cursor.execute(
        *(
            (query, [checkpoint_id])
            if thread_id is None
            else (f"{query} AND thread_id = %s", [checkpoint_id, thread_id])
        )
    )
    row = await cursor.fetchone()
    if row is None or row["place"] is None:
        return "checkpoint_id < %s", [checkpoint_id]
    return "(coalesce(judgetree_seq, 0), checkpoint_id) < (%s, %s)", [row["place"], checkpoint_id]


async def prune_by_place(cursor: AsyncCursor[DictRow], statements: Statements) -> None:
    """Execute LangGraph's statements, which keep the newest checkpoints, for those that were saved last."""
    rows: Any = None
    while True:
        try:
            query, values, is_read = statements.send(rows)
        except StopIteration:
            return
        # Unprepared, as LangGraph executes them: a generic plan would look through each array.
        await cursor.execute(by_place(query), values, prepare=False)
        rows = await cursor.fetchall() if is_read else []


def by_place(query: str) -> LiteralString:
    """Return one of LangGraph's statements with the newest checkpoints chosen by their place."""
    return query.replace(_BY_ID, f"ORDER BY checkpoint_ns DESC, {BY_PLACE}")
