"""Deletes conversations without a new turn for a number of days, with their turns and search trees."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from ...modules.errors import ConversationBusy, LoadingError, LostParts, SettingsError
from ...modules.memory.schema import moment_us
from .identity import is_of_store
from .turn.state import ConversationState
from .turn.store import StoredConversation

if TYPE_CHECKING:
    from .services import OpenStores

logger = logging.getLogger(__name__)

_DAY_US = 24 * 60 * 60 * 1_000_000


@dataclass(frozen=True, kw_only=True)
class ExpiryReport:
    """What was deleted, or would be in a dry run."""

    conversations: tuple[str, ...]
    """Names of the deleted conversations."""
    turns: int
    """Number of turns deleted from the memory, those of ``orphans`` included."""
    threads: int
    """Number of threads deleted from the store: of conversations, turns and search trees."""
    dry_run: bool
    """True if nothing was deleted."""
    orphans: tuple[str, ...] = ()
    """Ids of conversations whose turns were in the memory, but which the store no longer has."""
    busy: tuple[str, ...] = ()
    """Names of old conversations that were kept because they were answering a question."""
    unreadable: tuple[str, ...] = ()
    """Names of conversations that were kept because they are saved in another format, or in parts."""


def now_utc() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


async def delete_old(
    opened: OpenStores,
    days: int,
    *,
    dry_run: bool,
    on_progress: Callable[[int, int], None] | None,
    clock: Callable[[], datetime],
) -> ExpiryReport:
    """Do the work of ``Conversations.delete_old_conversations``; it reads every checkpoint of the store once."""
    nothing = ExpiryReport(conversations=(), turns=0, threads=0, dry_run=dry_run)
    sweep = _Sweep(opened=opened, newest_us=_newest_us(days, clock()), report=nothing)
    # The memory first: a conversation is stored before its turns are remembered, so a new one is never an orphan.
    remembered = await asyncio.to_thread(opened.memory.conversations)
    stored = await opened.store.all_threads()
    store_id = await opened.identity.find()
    orphans = [each for each in remembered if each not in stored and store_id and is_of_store(each, store_id)]
    old = [kept for kept in stored.values() if await sweep.finds_old(kept)]
    work = [*(partial(sweep.delete_if_free, kept) for kept in old)]
    work += [partial(sweep.delete_orphan, each) for each in orphans]
    for done, step in enumerate(work, start=1):
        await step()
        if on_progress is not None:
            on_progress(done, len(work))
    return sweep.report


@dataclass(kw_only=True)
class _Sweep:
    """One pass over the conversations that may be old, and its results."""

    opened: OpenStores
    newest_us: int
    """Newest time that counts as old, in microseconds since 1970."""
    report: ExpiryReport
    """Results so far."""

    async def finds_old(self, kept: StoredConversation) -> bool:
        """Return whether a conversation is old; it may change until its lock is held."""
        try:
            return await self._old_state(kept) is not None
        except (LoadingError, LostParts) as error:
            logger.warning("left alone: %s", error)
            self.report = replace(self.report, unreadable=(*self.report.unreadable, kept.name))
            return False

    async def delete_if_free(self, kept: StoredConversation) -> None:
        """Delete a conversation if it is still old and its lock is free."""
        try:
            async with self.opened.locks.hold(kept.name, wait=False):
                await self._delete(kept)
        except ConversationBusy:
            self.report = replace(self.report, busy=(*self.report.busy, kept.name))

    async def delete_orphan(self, conversation_id: str) -> None:
        """Delete the turns of a deleted conversation if the newest is old."""
        memory = self.opened.memory
        turns = await asyncio.to_thread(memory.turns_of, conversation_id)
        moments = [moment for turn in turns if (moment := moment_us(turn["timestamp"])) is not None]
        if not moments or max(moments) > self.newest_us:
            return
        if not self.report.dry_run:
            await asyncio.to_thread(memory.delete_turns, conversation_id)
        total = self.report.turns + len(turns)
        self.report = replace(self.report, turns=total, orphans=(*self.report.orphans, conversation_id))

    async def _delete(self, kept: StoredConversation) -> None:
        """Delete the turns in the memory first and the conversation's own thread last.

        After an interruption the next pass finds the conversation as old again.
        """
        state = await self._old_state(kept)  # a turn may have been added before the lock was held
        if state is None:
            return
        store, memory, conversation_id = self.opened.store, self.opened.memory, state["conversation_id"]
        # An open turn that is resumed writes threads long before it changes the state.
        threads: Sequence[str] = await store.threads_of(state) if state["open_turn"] else kept.threads
        if self.report.dry_run:
            turns, deleted = len(await asyncio.to_thread(memory.turns_of, conversation_id)), len(threads)
        else:
            turns = await asyncio.to_thread(memory.delete_turns, conversation_id)
            deleted = await store.delete_threads(threads, conversation_id=conversation_id)
        self.report = replace(
            self.report,
            conversations=(*self.report.conversations, kept.name),
            turns=self.report.turns + turns,
            threads=self.report.threads + deleted,
        )

    async def _old_state(self, kept: StoredConversation) -> ConversationState | None:
        """Return the state of an old conversation; None if it is newer or was deleted."""
        state = await self.opened.store.load(kept.name)
        moment = moment_us(state["updated_at"]) if state else None
        return state if moment is not None and moment <= self.newest_us else None


def _newest_us(days: object, now: datetime) -> int:
    if not isinstance(days, int) or isinstance(days, bool) or days < 1:
        raise SettingsError(f"days={days!r} cannot be an age. Allowed: whole numbers of days from 1 on.")
    moment = moment_us(now.astimezone(UTC).isoformat())
    assert moment is not None, "isoformat gives a moment"
    return moment - days * _DAY_US
