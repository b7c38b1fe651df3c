"""The journal of model calls in SQL: a SQLite file, or tables in PostgreSQL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import methodcaller

from ..calls.journal import CallJournal, JournaledCall, call_of
from ..calls.kept import CallResult
from ..calls.record import CallRecord
from ..errors import SettingsError, UserError
from ..storage.databases import Database
from ..storage.tables import Statement, Tables
from ..storage.write_errors import is_full_disk, writing_error

JOURNAL_TABLES = Tables(
    thing="call-journal",
    names=("calls", "format"),
    create=(
        "CREATE TABLE IF NOT EXISTS {prefix}calls (call_key {bytes} PRIMARY KEY, root TEXT NOT NULL, "
        "account TEXT NOT NULL, estimate TEXT NOT NULL, kept TEXT, lost INTEGER NOT NULL)",
        "CREATE INDEX IF NOT EXISTS {prefix}calls_by_root ON {prefix}calls (root)",
        "CREATE INDEX IF NOT EXISTS {prefix}calls_by_account ON {prefix}calls (account)",
    ),
    remedy="Move it away; unfinished questions then start over.",
)


class SqlJournal(CallJournal):
    """A journal in SQLite or PostgreSQL.

    A write that need not wait is made on the loop itself: a trip to a thread costs several times as much, and on a busy
    core the thread waits for the interpreter at each statement. Writes that must wait go to one thread, many a commit.
    """

    def __init__(self, open_file: Callable[[], Database]) -> None:
        """Open the file with ``open_file`` at the first use, in the journal's own thread."""
        self._open_file = open_file
        self._file: Database | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="call-journal")
        self._waiting: list[tuple[Statement, asyncio.Future[None]]] = []
        self._committing: asyncio.Task[None] | None = None

    async def begin(self, key: bytes, root: str, account: str, estimate: CallRecord) -> None:
        """Note a call before it is made; a call noted earlier without a reply is counted as lost."""
        await self._write(
            "INSERT INTO calls (call_key, root, account, estimate, kept, lost) VALUES (?, ?, ?, ?, NULL, 0) "
            "ON CONFLICT (call_key) DO UPDATE SET lost = calls.lost + 1",
            (key, root, account, json.dumps(estimate, separators=(",", ":"))),
        )

    async def keep(self, key: bytes, root: str, kept: CallResult) -> None:
        """Save the reply of a call."""
        await self._write("UPDATE calls SET kept = ? WHERE call_key = ?", (kept.to_json(), key))

    async def drop(self, key: bytes, root: str) -> None:
        """Delete a failed call, which may be made again."""
        await self._write("DELETE FROM calls WHERE call_key = ?", (key,))

    async def calls_of(self, root: str) -> dict[bytes, JournaledCall]:
        """Return the calls of a root thread and of the threads below it, by key."""
        rows = await self._read("SELECT call_key, account, estimate, kept, lost FROM calls WHERE root = ?", (root,))
        return {bytes(row[0]): _call_of(row) for row in rows}  # type: ignore[call-overload]

    async def booked_calls(self, name: str | None = None) -> list[JournaledCall]:
        """Return the calls booked to ``name`` (None: to any name), those without a reply counted as lost."""
        of_name, names = ("<> ''", ()) if name is None else ("= ?", (name,))
        sql = f"SELECT call_key, account, estimate, kept, lost FROM calls WHERE account {of_name}"
        rows = await self._read(sql, names)
        return [_call_of(row) for row in rows]

    async def forget(self, roots: Iterable[str]) -> None:
        """Delete the calls of finished or deleted root threads, except booked ones."""
        sql = "DELETE FROM calls WHERE root = ? AND account = ''"
        await asyncio.gather(*(self._write(sql, (root,)) for root in roots))

    async def delete_accounts(self, names: Collection[str]) -> None:
        """Delete the calls that are booked to these names."""
        await asyncio.gather(*(self._write("DELETE FROM calls WHERE account = ?", (name,)) for name in names))

    async def aclose(self) -> None:
        """Write what is waiting and close the file."""
        if self._committing is not None:
            await asyncio.wait([self._committing])
        if self._file is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._file.close)
            self._file = None
        self._thread.shutdown(wait=False)

    async def _write(self, sql: str, parameters: Sequence[object]) -> None:
        try:
            if self._file is not None and self._file.write_at_once((sql, parameters)):
                return
        except Exception as error:
            raise self._journal_error(error) from error
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(((sql, parameters), written))
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit_all())
        await written

    async def _commit_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                error: Exception | None = None
                try:
                    await self._in_thread(methodcaller("write", [statement for statement, _ in batch]))
                except Exception as failure:  # noqa: BLE001 - raised where the writes are awaited
                    error = failure
                for _, written in batch:
                    if written.done():  # cancelled
                        continue
                    if error is None:
                        written.set_result(None)
                    else:
                        written.set_exception(self._journal_error(error))
        finally:
            self._committing = None

    async def _read(self, sql: str, parameters: Sequence[object]) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = []
        try:
            await self._in_thread(lambda file: rows.extend(file.read((sql, parameters))))
        except Exception as error:
            raise self._journal_error(error) from error
        return rows

    async def _in_thread(self, work: Callable[[Database], None]) -> None:
        def with_file() -> None:
            if self._file is None:
                self._file = self._open_file()
            work(self._file)

        await asyncio.get_running_loop().run_in_executor(self._thread, with_file)

    def _journal_error(self, error: Exception) -> UserError:
        if isinstance(error, UserError):
            return error
        name = f"The call journal {self._file.name}" if self._file else "The journal of model calls"
        if is_full_disk(error):
            return writing_error(name, error)
        return SettingsError(
            f"{name} cannot be used: {' '.join(str(error).split())}. No model is called without it, since a killed "
            "question would then pay twice. Repair the file, its rights or the database, and resume."
        )


def _call_of(row: tuple[object, ...]) -> JournaledCall:
    _, account, estimate, kept, lost = row
    return call_of(str(account), str(estimate), None if kept is None else str(kept), int(str(lost)))
