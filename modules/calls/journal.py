"""The journal of model calls: each is on the disk before it is made, and its reply before that is used.

A question whose process was killed is resumed from its checkpoints, which lag behind what was paid for. What they miss
stands here: a call of the same thread, node and chunk that asks the same is answered from the journal, with the record
that it had. So a resume makes only the calls that were in flight, and a model that samples cannot answer twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from ..disk import is_full_disk, writing_error
from ..errors import SettingsError, UserError
from .kept import KeptCall
from .record import CallRecord

BOOKED_TO: ContextVar[str] = ContextVar("booked_to", default="")
"""Who keeps the books of the calls of a task, such as a question of a batch run; ``""`` where nobody does.

Calls that are booked stay in the journal until ``CallJournal.forget_booked``; others go with their finished thread.
"""

Statement = tuple[str, Sequence[object]]
"""SQL with ``?`` for each of its parameters."""


class JournalFile(Protocol):
    """A database with the table ``calls``; its methods block, but for the first, and are called by one thread."""

    name: str
    """As messages call it."""

    def write_at_once(self, statement: Statement) -> bool:
        """Execute it in a transaction of its own if nothing has to be waited for; whether it was executed."""
        ...

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute all in one transaction; they outlive the process as soon as this returns."""
        ...

    def read(self, statement: Statement) -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@dataclass(frozen=True, kw_only=True)
class JournaledCall:
    """A call as the journal has it."""

    kept: KeptCall | None = None
    """None until its reply was kept."""
    estimate: CallRecord | None = None
    """What it was expected to take, as the record of a call that was cut off."""
    lost: int = 0
    """How often it was made without its reply being kept."""
    booked_to: str = ""

    @property
    def records(self) -> list[CallRecord]:
        """The records of the call: those of tries that were cut off first, then that of its reply."""
        cut_off = (
            []
            if self.estimate is None
            else [
                CallRecord(**{**self.estimate, "call_id": f"{self.estimate['call_id']}-{number}"})
                for number in range(self.lost)
            ]
        )
        return cut_off if self.kept is None else [*cut_off, self.kept.record]


_UNKNOWN = JournaledCall()


class CallJournal:
    """Writes calls down. Use it on judgetree's own loop.

    A write that has to wait for nothing is made on the loop: a trip to a thread costs several times as much, and on a
    busy core the thread waits for the interpreter at each of its statements. What has to wait goes to a thread of its
    own, many writes in one commit.
    """

    def __init__(self, open_file: Callable[[], JournalFile]) -> None:
        """``open_file`` is called at the first use, in the journal's own thread."""
        self._open_file = open_file
        self._file: JournalFile | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="call-journal")
        self._waiting: list[tuple[Statement, asyncio.Future[None]]] = []
        self._committing: asyncio.Task[None] | None = None

    async def begin(self, key: bytes, root: str, booked_to: str, estimate: CallRecord) -> None:
        """Note a call that is about to be made. One that stands there without a reply was lost, and is counted."""
        call = KeptCall.record_to_json(estimate)
        await self._write(
            "INSERT INTO calls (call_key, root, booked_to, estimate, kept, lost) VALUES (?, ?, ?, ?, NULL, 0) "
            "ON CONFLICT (call_key) DO UPDATE SET lost = calls.lost + 1",
            (key, root, booked_to, call),
        )

    async def keep(self, key: bytes, kept: KeptCall) -> None:
        """Note the reply of a call."""
        await self._write("UPDATE calls SET kept = ? WHERE call_key = ?", (kept.to_json(), key))

    async def drop(self, key: bytes) -> None:
        """Take out a call that has failed: it may be made again."""
        await self._write("DELETE FROM calls WHERE call_key = ?", (key,))

    async def calls_of(self, root: str) -> dict[bytes, JournaledCall]:
        """Return the calls of a root thread and of the threads below it, by key."""
        rows = await self._read("SELECT call_key, booked_to, estimate, kept, lost FROM calls WHERE root = ?", (root,))
        return {bytes(row[0]): _call_of(row) for row in rows}  # type: ignore[call-overload]

    async def booked_calls(self, name: str | None = None) -> list[JournaledCall]:
        """The calls that are booked to a name, or to any, as if none was in flight: those without a reply are lost."""
        of_name, names = ("<> ''", ()) if name is None else ("= ?", (name,))
        sql = f"SELECT call_key, booked_to, estimate, kept, lost FROM calls WHERE booked_to {of_name}"
        rows = await self._read(sql, names)
        return [_call_of(row) for row in rows]

    async def forget(self, roots: Iterable[str]) -> None:
        """Delete the calls of root threads, which are finished or deleted, but for those that are booked."""
        sql = "DELETE FROM calls WHERE root = ? AND booked_to = ''"
        await asyncio.gather(*(self._write(sql, (root,)) for root in roots))

    async def forget_booked(self, names: Collection[str]) -> None:
        """Delete the calls that are booked to these, whose books are closed."""
        await asyncio.gather(*(self._write("DELETE FROM calls WHERE booked_to = ?", (name,)) for name in names))

    async def aclose(self) -> None:
        """Write what is waiting, and close the file."""
        if self._committing is not None:
            await asyncio.wait([self._committing])
        if self._file is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._file.close)
            self._file = None
        self._thread.shutdown(wait=False)

    async def _write(self, sql: str, parameters: Sequence[object]) -> None:
        if self._file is not None and self._written_at_once(self._file, (sql, parameters)):
            return
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(((sql, parameters), written))
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit_all())
        await written

    def _written_at_once(self, file: JournalFile, statement: Statement) -> bool:
        try:
            return file.write_at_once(statement)
        except Exception as error:
            raise self._unusable(error) from error

    async def _commit_all(self) -> None:
        """Commit what waits, and what has come meanwhile, until nothing does."""
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                error: Exception | None = None
                try:
                    await self._in_thread(partial(_write_all, [statement for statement, _ in batch]))
                except Exception as failure:  # noqa: BLE001 - raised where the writes are awaited
                    error = failure
                for _, written in batch:
                    if written.done():  # cancelled
                        continue
                    if error is None:
                        written.set_result(None)
                    else:
                        written.set_exception(self._unusable(error))
        finally:
            self._committing = None

    async def _read(self, sql: str, parameters: Sequence[object]) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = []
        try:
            await self._in_thread(lambda file: rows.extend(file.read((sql, parameters))))
        except Exception as error:
            raise self._unusable(error) from error
        return rows

    async def _in_thread(self, work: Callable[[JournalFile], None]) -> None:
        def with_file() -> None:
            if self._file is None:
                self._file = self._open_file()
            work(self._file)

        await asyncio.get_running_loop().run_in_executor(self._thread, with_file)

    def _unusable(self, error: Exception) -> UserError:
        if isinstance(error, UserError):
            return error
        name = f"The call journal {self._file.name}" if self._file else "The journal of model calls"
        if is_full_disk(error):
            return writing_error(name, error)
        return SettingsError(
            f"{name} cannot be used: {' '.join(str(error).split())}. No model is called without it, since a killed "
            "question would then pay twice. Mend the file or its rights, or the database, and resume."
        )


@dataclass(kw_only=True)
class ThreadCalls:
    """The journal as one thread of a search tree sees it."""

    journal: CallJournal
    root: str
    """The root thread, with which its calls are read and forgotten."""
    thread_id: str
    known: dict[bytes, JournaledCall] = field(default_factory=dict)
    """What stood in the journal when the run began."""
    booked_to: str = field(default_factory=BOOKED_TO.get)

    @property
    def known_ids(self) -> set[str]:
        """Ids of the calls of the whole tree whose replies stood in the journal when the run began."""
        return {call.kept.record["call_id"] for call in self.known.values() if call.kept is not None}

    def of_thread(self, thread_id: str) -> ThreadCalls:
        """Return the same for another thread of the tree."""
        return replace(self, thread_id=thread_id)

    def slot(self, node: str, chunk_id: str, request: bytes, number: int) -> CallSlot:
        """Return the place of a call: the ``number``-th, from 0, that a node makes of a request."""
        place = "\x00".join((self.thread_id, node, chunk_id, str(number))).encode()
        key = hashlib.sha256(request + place).digest()
        return CallSlot(key=key, call=self.known.get(key, _UNKNOWN), calls=self)


@dataclass(frozen=True, kw_only=True)
class CallSlot:
    """The journal's place for one call."""

    key: bytes
    call: JournaledCall
    """As it stood there when the run began."""
    calls: ThreadCalls

    @property
    def kept(self) -> KeptCall | None:
        """The reply, if it was kept."""
        return self.call.kept

    @property
    def cut_off(self) -> list[CallRecord]:
        """Records of the tries that a kill has cut off."""
        return replace(self.call, kept=None).records

    async def begin(self, estimate: CallRecord) -> None:
        """Write down that the call is about to be made."""
        await self.calls.journal.begin(self.key, self.calls.root, self.calls.booked_to, estimate)

    async def keep(self, kept: KeptCall) -> None:
        """Write down its reply."""
        await self.calls.journal.keep(self.key, kept)

    async def drop(self) -> None:
        """Forget the call, which has failed."""
        await self.calls.journal.drop(self.key)


async def thread_calls(journal: CallJournal | None, root: str, *, is_new: bool = False) -> ThreadCalls | None:
    """Return the journal for a run of a root thread; what it has of a thread that ``is_new`` is not looked for."""
    if journal is None:
        return None
    known = {} if is_new else await journal.calls_of(root)
    return ThreadCalls(journal=journal, root=root, thread_id=root, known=known)


async def forget_calls(calls: ThreadCalls | None) -> None:
    """Delete the journaled calls of a tree whose root thread is finished, unless somebody else keeps their books."""
    if calls is not None and not calls.booked_to:
        await calls.journal.forget([calls.root])


def _write_all(statements: Sequence[Statement], file: JournalFile) -> None:
    file.write(statements)


def _call_of(row: tuple[object, ...]) -> JournaledCall:
    _, booked_to, estimate, kept, lost = row
    cut_off = int(str(lost)) + (kept is None)
    return JournaledCall(
        kept=None if kept is None else KeptCall.from_json(str(kept)),
        estimate=KeptCall.record_from_json(str(estimate)),
        lost=cut_off,
        booked_to=str(booked_to),
    )
