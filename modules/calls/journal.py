"""The journal of model calls: each call is on disk before it is made, and each reply before it is used.

The checkpoints from which a killed question resumes lag behind the calls that were paid for. The journal answers those
calls again: the same request of the same thread, node and chunk gets the saved reply with its record. A resume makes
only the calls that were in flight, and a sampling model cannot give a second answer. An attempt that failed and may be
billed has an entry of its own, so that it stays in the books of a question whose node raised.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import cast

from .kept import CallResult
from .record import INTERRUPTED, CallRecord
from .transcript_writer import ThreadTranscripts

ACCOUNT: ContextVar[str] = ContextVar("account", default="")
"""Name of the account of a task's calls, such as a question of a batch run; ``""`` for none.

Booked calls stay in the journal until ``CallJournal.delete_accounts``; others are deleted with their finished thread.
"""


@dataclass(frozen=True, kw_only=True)
class JournaledCall:
    """One call in the journal."""

    kept: CallResult | None = None
    """The saved reply; None if there is none."""
    estimate: CallRecord | None = None
    """Expected usage, as the record of an interrupted call."""
    lost: int = 0
    """Number of times it was made without a saved reply."""
    account: str = ""

    @property
    def records(self) -> list[CallRecord]:
        """Records of the interrupted tries, then that of the reply."""
        return self.interrupted if self.kept is None else [*self.interrupted, self.kept.record]

    @property
    def interrupted(self) -> list[CallRecord]:
        """Records of the interrupted tries."""
        if self.estimate is None:
            return []
        first_id = self.estimate["call_id"]
        return [CallRecord(**{**self.estimate, "call_id": f"{first_id}-{number}"}) for number in range(self.lost)]


_UNKNOWN = JournaledCall()


class CallJournal(ABC):
    """The journal of a checkpoint store; use it on judgetree's own loop.

    A write is saved when its coroutine returns. The same write again changes nothing, but a second ``begin`` counts a
    lost call.
    """

    @abstractmethod
    async def begin(self, key: bytes, root: str, account: str, estimate: CallRecord) -> None:
        """Note a call before it is made; a call noted earlier without a reply is counted as lost."""

    @abstractmethod
    async def keep(self, key: bytes, root: str, kept: CallResult) -> None:
        """Save the reply of a call."""

    @abstractmethod
    async def drop(self, key: bytes, root: str) -> None:
        """Delete a failed call, which may be made again."""

    @abstractmethod
    async def calls_of(self, root: str) -> dict[bytes, JournaledCall]:
        """Return the calls of a root thread and of the threads below it, by key."""

    @abstractmethod
    async def booked_calls(self, name: str | None = None) -> list[JournaledCall]:
        """Return the calls booked to ``name`` (None: to any name), those without a reply counted as lost."""

    @abstractmethod
    async def forget(self, roots: Iterable[str]) -> None:
        """Delete the calls of finished or deleted root threads, except booked ones."""

    @abstractmethod
    async def delete_accounts(self, names: Collection[str]) -> None:
        """Delete the calls that are booked to these names."""

    @abstractmethod
    async def aclose(self) -> None:
        """Write what is waiting and close the journal."""


@dataclass(kw_only=True)
class ThreadCalls:
    """One thread's view of the journal."""

    journal: CallJournal
    root: str
    """Root thread, by which the calls of a tree are read and deleted."""
    thread_id: str
    known: dict[bytes, JournaledCall] = field(default_factory=dict)
    """Calls in the journal when the run began, by key."""
    account: str = field(default_factory=ACCOUNT.get)
    transcripts: ThreadTranscripts | None = None
    """Recorder of the calls; None where none are recorded."""
    run: str = ""
    """Digest of the question and settings of the run; ``""`` where the thread has but one."""

    @property
    def known_replies(self) -> list[CallResult]:
        """Calls of the whole tree whose replies were in the journal when the run began."""
        return [call.kept for call in self.known.values() if call.kept is not None]

    @property
    def known_failures(self) -> list[CallRecord]:
        """Failed attempts of the whole tree that may be billed and were in the journal when the run began."""
        records = (record for call in self.known.values() for record in call.interrupted)
        return [record for record in records if record["error"] != INTERRUPTED]

    @property
    def known_ids(self) -> set[str]:
        """Ids of these calls."""
        return {kept.record["call_id"] for kept in self.known_replies}

    def of_thread(self, thread_id: str) -> ThreadCalls:
        """Return the journal for another thread of the tree."""
        return replace(self, thread_id=thread_id)

    def slot(self, node: str, chunk_id: str, request: bytes, number: int) -> JournalEntry:
        """Return the entry of a call: the ``number``-th, from 0, that a node makes of a request."""
        place = "\x00".join((self.thread_id, node, chunk_id, str(number))).encode()
        key = hashlib.sha256(request + place).digest()
        failed: list[CallRecord] = []
        if self.known:
            while (call := self.known.get(_failure_key(key, len(failed)))) is not None:
                failed += call.interrupted
        return JournalEntry(key=key, call=self.known.get(key, _UNKNOWN), calls=self, failed=failed)


@dataclass(frozen=True, kw_only=True)
class JournalEntry:
    """The journal's entry for one call."""

    key: bytes
    call: JournaledCall
    """The call in the journal when the run began."""
    calls: ThreadCalls
    failed: list[CallRecord] = field(default_factory=list)
    """Records of its attempts that failed and may be billed, in this run and in earlier ones."""

    def add_failure(self, record: CallRecord) -> CallRecord:
        """Return the record of a failed attempt as it will be read back, for ``save_failure``."""
        estimate = CallRecord(**{**record, "call_id": _failure_key(self.key, len(self.failed)).hex()[:32]})
        (noted,) = JournaledCall(estimate=estimate, lost=1).interrupted
        self.failed.append(noted)
        return noted

    async def save_failure(self) -> None:
        """Save the newest failed attempt as an entry of its own."""
        key = _failure_key(self.key, len(self.failed) - 1)
        estimate = CallRecord(**{**self.failed[-1], "call_id": key.hex()[:32]})
        await self.calls.journal.begin(key, self.calls.root, self.calls.account, estimate)


def _failure_key(call: bytes, number: int) -> bytes:
    """Return the key of the entry for a failed attempt of a call, numbered from 0."""
    return hashlib.sha256(call + f"failed {number}".encode()).digest()


async def thread_calls(
    journal: CallJournal | None,
    root: str,
    *,
    is_new: bool = False,
    transcripts: ThreadTranscripts | None = None,
    run: str = "",
) -> ThreadCalls | None:
    """Return the journal for a run of a root thread; None without a journal, and no lookup for a new thread.

    Replies of another ``run``, which was killed before its first checkpoint, are not among the known calls.
    """
    if journal is None:
        return None
    known = {} if is_new else await journal.calls_of(root)
    own = {key: call for key, call in known.items() if call.kept is None or call.kept.run in ("", run)}
    return ThreadCalls(journal=journal, root=root, thread_id=root, known=own, transcripts=transcripts, run=run)


async def forget_calls(calls: ThreadCalls | None) -> None:
    """Delete the journaled calls of a tree whose root thread is finished, unless they are booked."""
    if calls is not None and not calls.account:
        await calls.journal.forget([calls.root])


def call_of(account: str, estimate: str, kept: str | None, lost: int) -> JournaledCall:
    """Return a call from what a journal holds; a call without a reply has been lost once more than was written."""
    return JournaledCall(
        kept=None if kept is None else CallResult.from_json(kept),
        estimate=cast(CallRecord, json.loads(estimate)),
        lost=lost + (kept is None),
        account=account,
    )
