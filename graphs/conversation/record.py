"""What is kept of one conversation, in its state and in the memory, and how that is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ...modules.errors import SettingsError, UnknownThread
from ...modules.memory.memory import ConversationMemory, backfill, by_time
from ...modules.memory.turns import MAIN_BRANCH, Branch, QaPair, utc_now
from ..rag.search_tree import SearchTree
from . import branches
from .identity import new_conversation_id
from .services import ConversationServices
from .turn.state import ConversationState, new_conversation
from .turn.store import ConversationStore

Change = Callable[[ConversationState], ConversationState]


class ConversationRecord:
    """Reads and changes one conversation; use it on judgetree's own loop.

    Every method raises ``SettingsError`` where the checkpoint store fails, ``CollectionError`` where the memory does.
    """

    def __init__(self, services: ConversationServices, name: str) -> None:
        self.name = name
        self._services = services

    async def load(self) -> ConversationState | None:
        """Its state; None if nothing was ever asked."""
        store = (await self._services.open()).store
        with self._services.store_errors():
            return await store.load(self.name)

    async def new(self) -> ConversationState:
        """A conversation without a turn, under an id of its own; nothing of it is saved yet."""
        store_id = await (await self._services.open()).make_store_id()
        return new_conversation(self.name, new_conversation_id(store_id), utc_now())

    async def all_turns(self) -> tuple[ConversationState | None, list[QaPair]]:
        """Its state, and all turns of all branches in the order in which they were answered."""
        state = await self.load()
        if state is None:
            return None, []
        memory = (await self._services.open()).memory
        remembered = await asyncio.to_thread(memory.turns_of, state["conversation_id"])
        # The state is the truth; what a failed deletion has left in the memory belongs to no branch.
        by_id = {turn["turn_id"]: turn for turn in (*remembered, *state["chat_history"])}
        known = [turn for turn in by_id.values() if turn["turn_number"] <= _last_number(state, turn["branch_id"])]
        return state, sorted(known, key=by_time)

    async def find(self, state: ConversationState, turn_id: str) -> QaPair | None:
        """The turn of that id, from the state or else from the memory; None if there is none."""
        for turn in state["chat_history"]:
            if turn["turn_id"] == turn_id:
                return turn
        memory = (await self._services.open()).memory
        return next(iter(await asyncio.to_thread(memory.turns_of, state["conversation_id"], [turn_id])), None)

    async def search_tree(self, turn: QaPair) -> SearchTree | None:
        """The search tree of a turn; None where nothing was searched for, or where it is gone."""
        if not turn["rag_thread_id"]:
            return None
        with self._services.store_errors():
            try:
                return await SearchTree.afrom_history(self._services.rag, turn["rag_thread_id"])
            except UnknownThread:
                return None

    async def change(self, change: Change) -> None:
        """Save what ``change`` makes of the state, with no turn in between.

        Raises:
            SettingsError: (Also) there is no such conversation.
        """
        opened = await self._services.open()
        async with opened.locks.hold(self.name):
            with self._services.store_errors():
                state = await self._known_state(opened.store)
                await opened.store.save(state, change(state))

    async def delete_branch(self, name: str) -> int:
        """Delete a branch with its turns and their search trees; how many turns that were.

        Raises:
            SettingsError: (Also) see ``branches.without_branch``.
        """
        opened = await self._services.open()
        async with opened.locks.hold(self.name):
            with self._services.store_errors():
                state = await self._known_state(opened.store)
                changes = branches.without_branch(state, name)
                branch_id = branches.branch_named(state["branches"], name)["branch_id"]
                gone = [turn for turn in (await self.all_turns())[1] if turn["branch_id"] == branch_id]
                await self._forget(state, gone, changes)
        return len(gone)

    async def undo(self) -> QaPair:
        """Take back the newest turn of the active branch, with its search tree.

        Raises:
            SettingsError: (Also) the branch has no turn of its own, or another one forks from it.
        """
        opened = await self._services.open()
        async with opened.locks.hold(self.name):
            with self._services.store_errors():
                state = await self._known_state(opened.store)
                head = state["branches"][state["active_branch"]]["head_turn_id"]
                last = await self.find(state, head) if head else None
                if last is None or last["branch_id"] != state["active_branch"]:
                    raise SettingsError("There is nothing to undo: the active branch has no turn of its own.")
                await self._forget(state, [last], branches.without_last_turn(state, last))
        return last

    async def backfill(self, memory: ConversationMemory, ids: Sequence[str]) -> int:
        """Put turns of the memory that have no parent in a line on the main branch, which then ends with them.

        ``ids`` are those of the memory that such turns stand under: the conversation's id, and names that another
        program gave; turns under a name become turns of the conversation, which is made where there is none.
        Gives back how many turns without a parent there were.
        """
        opened = await self._services.open()
        async with opened.locks.hold(self.name):
            with self._services.store_errors():
                state = await opened.store.load(self.name)
                if state is None:
                    state = await self.new()
                    await opened.store.begin(state)
                conversation_id = state["conversation_id"]
                # Its own turns come first.
                await asyncio.to_thread(memory.add_turns, conversation_id, state["chat_history"])
                for each in ids:
                    if each != conversation_id:
                        await asyncio.to_thread(memory.move_turns, each, conversation_id)
                done = await asyncio.to_thread(backfill, memory, conversation_id)
                if done:
                    await self._end_main_with(await asyncio.to_thread(memory.turns_of, conversation_id), state)
        return done

    async def _end_main_with(self, turns: Sequence[QaPair], state: ConversationState) -> None:
        line = sorted((t for t in turns if t["branch_id"] == MAIN_BRANCH), key=lambda turn: turn["turn_number"])
        last = line[-1]
        main: Branch = state["branches"][MAIN_BRANCH] | {
            "head_turn_id": last["turn_id"],
            "head_number": last["turn_number"],
        }
        changes = ConversationState(
            title=state["title"] or line[0]["query"],
            branches={**state["branches"], MAIN_BRANCH: main},
        )
        await (await self._services.open()).store.save(state, changes)

    async def _known_state(self, store: ConversationStore) -> ConversationState:
        state = await store.load(self.name)
        if state is None:
            raise SettingsError(f"There is no conversation {self.name!r} yet. Ask something first.")
        return state

    async def _forget(self, state: ConversationState, turns: Sequence[QaPair], changes: ConversationState) -> None:
        """Turns out of the memory, then out of the state by its ``changes``, then their search trees.

        In this order, since the memory is brought up to date from the state: a turn that a crash has left in the state
        comes back whole.
        """
        opened = await self._services.open()
        await asyncio.to_thread(
            opened.memory.delete_turns, state["conversation_id"], [turn["turn_id"] for turn in turns]
        )
        await opened.store.save(state, changes)
        for turn in turns:
            if turn["rag_thread_id"]:
                await opened.store.delete_threads(await opened.store.tree_threads(turn["rag_thread_id"]))


def _last_number(state: ConversationState, branch_id: str) -> int:
    branch = state["branches"].get(branch_id)
    return branch["head_number"] if branch else 0
