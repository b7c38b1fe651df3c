"""Conversations in the checkpoint store: each state is one thread, each turn and each search another."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from ....modules.calls.journal import CallJournal
from ....modules.calls.transcript_writer import forget_transcripts
from ....modules.calls.transcripts import TranscriptPlace
from ....modules.errors import LoadingError, LostParts
from ....modules.memory.turns import Branch, OpenTurn, utc_now
from ...savers.appending import following
from ...threads.checkpoints import Saver, keep_latest, newest_first, record_graph
from ...threads.named_failures import naming_conversation
from ...threads.snapshots import is_absent
from ...threads.thread_ids import CONVERSATION, TURN
from .state import ConversationState, read_state

logger = logging.getLogger(__name__)

_KIND = {"kind": "conversation"}
PRUNE_EVERY = 20
"""Number of writes between deletions of a conversation's earlier states; the first is at the first write of a process.
SQLite keeps the whole state at each write, and only the newest is read."""
PAGE_CHECKPOINTS = 2000


@dataclass(frozen=True, kw_only=True)
class ConversationSummary:
    """Summary of one conversation."""

    name: str
    conversation_id: str
    title: str
    """First question."""
    collection: str
    """Name and address of the collection that it searches; ``""`` before the first search."""
    turns: int
    """Number of turns on all branches."""
    branches: tuple[Branch, ...]
    active_branch: str
    open_turn: OpenTurn | None
    created_at: str
    updated_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, kw_only=True)
class ConversationPage:
    """A part of the list of conversations."""

    summaries: tuple[ConversationSummary, ...]
    total: int
    """Number of conversations in the whole list."""
    hidden: int = 0
    """Number of those that were left out of it."""


@dataclass(frozen=True, kw_only=True)
class StoredConversation:
    """The threads of a conversation."""

    name: str
    threads: tuple[str, ...]
    """In the order of ``ConversationStore.threads_of``."""


@dataclass(eq=False)
class ConversationStore:
    """Reads and writes conversations. Use it on the loop on which its saver was opened."""

    saver: Saver
    """The checkpoint store."""
    journal: CallJournal | None = None
    """Journal that forgets the calls of deleted threads; None without one."""
    transcripts: TranscriptPlace | None = None
    """Where the transcripts of calls are, which are deleted with their threads; None for no place."""
    page_checkpoints: int = PAGE_CHECKPOINTS
    """Number of checkpoints that ``all_threads`` reads at once."""

    def __post_init__(self) -> None:
        self._writes: Counter[str] = Counter()
        self._graph = record_graph(ConversationState, self.saver)

    async def load(self, name: str) -> ConversationState | None:
        """Read the saved state of a conversation; None if it does not exist.

        Raises:
            LoadingError: The state has another format than judgetree reads.
        """
        snapshot = await self._graph.aget_state(_config_of(name))
        if is_absent(snapshot):
            return None
        return {**read_state(snapshot.values, name), "revision": _id_of(snapshot.config)}

    async def begin(self, state: ConversationState) -> ConversationState:
        """Save a conversation for the first time; returns its state as saved.

        Raises:
            ThreadMoved: The conversation exists.
        """
        return await self._write(state, state, after="")

    async def save(self, known: ConversationState, changes: ConversationState) -> ConversationState:
        """Save the changes of a conversation, with the time; returns its state as saved.

        Args:
            known: State that this store returned; one without a revision is overwritten in any case.
            changes: The fields that change, with their new values.

        Raises:
            ThreadMoved: The conversation was written or deleted since ``known`` was read or saved.
        """
        return await self._write(known, {**changes, "updated_at": utc_now()}, after=known.get("revision"))

    async def page(
        self,
        limit: int | None = None,
        *,
        offset: int = 0,
        prefix: str = "",
        is_hidden: Callable[[str], bool] = lambda _: False,
    ) -> ConversationPage:
        """Return ``limit`` conversations, the most recently updated first; it reads the newest state of each.

        A conversation of another format, or of which the store has lost parts, is left out, with a warning; the total
        counts it.

        Args:
            limit: Most conversations; None for all.
            offset: Conversations before the first.
            prefix: What their names begin with, in ASCII.
            is_hidden: Says by its name whether a conversation is left out, and counted as hidden.
        """
        all_threads = await newest_first(self.saver, conversation_thread(prefix))
        threads = [each for each in all_threads if not is_hidden(each.removeprefix(CONVERSATION))]
        found: list[ConversationSummary] = []
        for thread_id in threads[offset : None if limit is None else offset + limit]:
            name = thread_id.removeprefix(CONVERSATION)
            try:
                with naming_conversation(name):
                    state = await self.load(name)
            except (LoadingError, LostParts) as error:
                logger.warning("left out of the list: %s", error)
                continue
            if state is not None:
                found.append(summary_of(state))
        return ConversationPage(summaries=tuple(found), total=len(threads), hidden=len(all_threads) - len(threads))

    async def threads_of(self, state: ConversationState) -> list[str]:
        """Return all threads of a conversation: those of turns and search trees, abandoned ones too; its own last.

        In this order an interrupted deletion leaves a conversation that can be deleted again.
        """
        if not (conversation_id := state["conversation_id"]):
            return [conversation_thread(state["name"])]
        saved = self.saver.alist(None, filter={"conversation_id": conversation_id})
        return _own_last(state["name"], [_thread_of(each) async for each in saved])

    async def remains_of(self, name: str) -> ConversationState:
        """Return name and id of a conversation of which the store has lost parts, ``""`` for an id that is lost."""
        own, saved = conversation_thread(name), self.saver.alist(None, filter=_KIND)
        ids = [str(dict(each.metadata)["conversation_id"]) async for each in saved if _thread_of(each) == own]
        return ConversationState(name=name, conversation_id=next(iter(ids), ""))

    async def all_threads(self) -> dict[str, StoredConversation]:
        """Return all conversations by id, those of other formats too, in one pass over all checkpoints.

        It takes about 0.1 ms a checkpoint; ``threads_of`` takes 3 µs a checkpoint for each conversation.
        """
        threads: dict[str, list[str]] = {}
        names: dict[str, str] = {}
        async for saved in self._checkpoints():
            thread_id, conversation_id = _thread_of(saved), str(dict(saved.metadata).get("conversation_id", ""))
            if thread_id.startswith(CONVERSATION):
                name = thread_id.removeprefix(CONVERSATION)
                conversation_id = conversation_id or name  # an older format without ids
                names[conversation_id] = name
            threads.setdefault(conversation_id, []).append(thread_id)
        return {
            conversation_id: StoredConversation(name=name, threads=tuple(_own_last(name, threads[conversation_id])))
            for conversation_id, name in names.items()
        }

    async def tree_threads(self, rag_thread_id: str) -> list[str]:
        """Return the threads of one search tree, root first, with those that earlier attempts abandoned."""
        saved = self.saver.alist(None, filter={"root_thread_id": rag_thread_id})
        return list(dict.fromkeys([rag_thread_id, *[_thread_of(each) async for each in saved]]))

    async def delete_threads(self, thread_ids: Iterable[str], *, conversation_id: str = "") -> int:
        """Delete threads with all their checkpoints, and what was recorded of their calls; returns their number.

        ``conversation_id`` deletes what was recorded of the whole conversation. A turn's own thread is deleted once the
        turn is saved; its recorded calls stay with the turn's search tree.
        """
        deleted = list(thread_ids)
        recorded = [each for each in (*deleted, conversation_id) if each and not each.startswith(TURN)]
        if recorded:
            await forget_transcripts(self.transcripts, recorded)
        for thread_id in deleted:
            await self.saver.adelete_thread(thread_id)
        if self.journal is not None:
            await self.journal.forget(deleted)
        return len(deleted)

    async def _checkpoints(self) -> AsyncIterator[CheckpointTuple]:
        """Yield all checkpoints of the store, newest first, in pages: a saver that lists is locked."""
        before: RunnableConfig | None = None
        while True:
            page = [saved async for saved in self.saver.alist(None, before=before, limit=self.page_checkpoints)]
            for saved in page:
                yield saved
            if len(page) < self.page_checkpoints:
                return
            before = page[-1].config

    async def _write(
        self, known: ConversationState, values: ConversationState, *, after: str | None
    ) -> ConversationState:
        name, conversation_id = known["name"], known["conversation_id"]
        config = _config_of(name) if after is None else following(_config_of(name), after)
        config["metadata"] = {"conversation_id": conversation_id, **_KIND}
        saved = await self._graph.aupdate_state(config, values, as_node="record")
        if self._writes[conversation_id] % PRUNE_EVERY == 0:
            await keep_latest(self.saver, conversation_thread(name))
        self._writes[conversation_id] += 1
        return {**known, **values, "revision": _id_of(saved)}


def conversation_thread(name: str) -> str:
    """Return the thread id of a conversation; the prefix keeps it apart from search threads."""
    return f"{CONVERSATION}{name}"


async def conversation_name(saver: Saver, conversation_id: str) -> str | None:
    """Return the name of a conversation; None if the store has none of that id.

    It takes some microseconds a checkpoint of the store. A conversation keeps its name and id.
    """
    found = saver.alist(None, filter={"conversation_id": conversation_id, **_KIND}, limit=1)
    return next((_thread_of(saved).removeprefix(CONVERSATION) for saved in [each async for each in found]), None)


def turn_thread(rag_thread_id: str) -> str:
    """Return the thread id of a turn's graph; the thread is deleted once the turn is saved."""
    return f"{TURN}{rag_thread_id}"


def _thread_of(saved: CheckpointTuple) -> str:
    return str(saved.config["configurable"]["thread_id"])


def _id_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["checkpoint_id"])


def _own_last(name: str, thread_ids: Iterable[str]) -> list[str]:
    own = conversation_thread(name)
    return [*dict.fromkeys(each for each in thread_ids if each != own), own]


def _config_of(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": conversation_thread(name)}}


def summary_of(state: ConversationState) -> ConversationSummary:
    """Return the summary of a conversation."""
    return ConversationSummary(
        name=state["name"],
        conversation_id=state["conversation_id"],
        title=state["title"],
        collection=state["collection"],
        turns=sum(branch["head_number"] - branch["fork_number"] for branch in state["branches"].values()),
        branches=tuple(state["branches"].values()),
        active_branch=state["active_branch"],
        open_turn=state["open_turn"],
        created_at=state["created_at"],
        updated_at=state["updated_at"],
    )
