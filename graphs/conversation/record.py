"""Reads and changes one conversation in the checkpoint store and the memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from ...modules.errors import UnknownConversation
from ...modules.memory.memory import ConversationMemory, backfill, in_order
from ...modules.memory.turns import QaPair, rag_thread_of, utc_now
from ..threads.named_failures import naming_conversation
from . import branches
from .identity import new_conversation_id
from .services import ConversationServices, OpenStores
from .turn.state import ConversationState, new_conversation


class ConversationRecord:
    """One conversation in the checkpoint store and the memory; use it on judgetree's own loop.

    Every method raises ``SettingsError`` if the checkpoint store fails and ``CollectionError`` if the memory fails.
    """

    def __init__(self, services: ConversationServices, name: str) -> None:
        self.name = name
        self._services = services

    async def load(self) -> ConversationState | None:
        """Read its state; None before the first question."""
        store = (await self._services.open()).store
        with naming_conversation(self.name), self._services.store_errors():
            return await store.load(self.name)

    async def new(self) -> ConversationState:
        """Make the state of a conversation without turns, with a new id; it is not saved."""
        store_id = await (await self._services.open()).make_store_id()
        return new_conversation(self.name, new_conversation_id(store_id), utc_now())

    async def all_turns(self) -> tuple[ConversationState | None, list[QaPair]]:
        """Read its state, and all turns of all branches in the order of their answers."""
        state = await self.load()
        if state is None:
            return None, []
        memory = (await self._services.open()).memory
        remembered = await asyncio.to_thread(memory.turns_of, state["conversation_id"])
        # The state decides: turns that a failed deletion left in the memory are beyond the end of their branch.
        by_id = {turn["turn_id"]: turn for turn in (*remembered, *state["chat_history"])}
        known = (turn for turn in by_id.values() if turn["turn_number"] <= _last_number(state, turn["branch_id"]))
        return state, in_order(known)

    async def find(self, state: ConversationState, turn_id: str) -> QaPair | None:
        """Read a turn from the state, or else from the memory; None if neither has it."""
        for turn in state["chat_history"]:
            if turn["turn_id"] == turn_id:
                return turn
        memory = (await self._services.open()).memory
        return next(iter(await asyncio.to_thread(memory.turns_of, state["conversation_id"], [turn_id])), None)

    async def change(self, change: Callable[[ConversationState], ConversationState]) -> None:
        """Save the changes that ``change`` makes of the state, while no turn runs.

        Raises:
            UnknownConversation: The conversation does not exist.
        """
        async with self.held() as (state, opened):
            await opened.store.save(state, change(state))

    async def backfill(self, memory: ConversationMemory, ids: Sequence[str]) -> int:
        """Link turns without a parent, each to the turn before it, at the end of the main branch.

        ``ids`` are the conversation ids of such turns in the memory: the conversation's own, and names that another
        program used. Turns under a name are moved to this conversation, which is made if it does not exist. Returns
        the number of turns without a parent.
        """
        async with self._services.hold(self.name) as opened:
            state = await opened.store.load(self.name)
            if state is None:
                state = await opened.store.begin(await self.new())
            conversation_id = state["conversation_id"]
            # Its own turns come first.
            await asyncio.to_thread(memory.add_turns, conversation_id, state["chat_history"])
            for each in ids:
                if each != conversation_id:
                    await asyncio.to_thread(memory.move_turns, each, conversation_id)
            done = await asyncio.to_thread(backfill, memory, conversation_id)
            if done:
                turns = await asyncio.to_thread(memory.turns_of, conversation_id)
                await opened.store.save(state, branches.with_main_turns(state, turns))
        return done

    @asynccontextmanager
    async def held(self) -> AsyncIterator[tuple[ConversationState, OpenStores]]:
        """Read its state while holding its lock.

        Raises:
            UnknownConversation: The conversation does not exist.
        """
        async with self._services.hold(self.name) as opened:
            state = await opened.store.load(self.name)
            if state is None:
                raise UnknownConversation(f"There is no conversation {self.name!r} yet. Ask something first.")
            yield state, opened

    async def delete_turns(
        self, state: ConversationState, turns: Sequence[QaPair], changes: ConversationState, opened: OpenStores
    ) -> None:
        """Delete turns from the memory, then from the state by its ``changes``, then their search trees.

        The order makes a crash harmless: the memory is completed from the state, so a turn that is still in the state
        is restored.
        """
        ids = [turn["turn_id"] for turn in turns]
        await asyncio.to_thread(opened.memory.delete_turns, state["conversation_id"], ids)
        await opened.store.save(state, changes)
        for turn in turns:
            root = turn["rag_thread_id"]
            recorded = rag_thread_of(state["conversation_id"], turn["turn_id"])
            await opened.store.delete_threads(await opened.store.tree_threads(root) if root else [recorded])


def _last_number(state: ConversationState, branch_id: str) -> int:
    branch = state["branches"].get(branch_id)
    return branch["head_number"] if branch else 0
