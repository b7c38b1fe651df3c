"""Conversations over one collection: asked, listed, deleted, expired and backfilled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from ..modules.background_loop import async_twin, blocking
from ..modules.errors import LostParts, SettingsError, UnknownConversation
from ..modules.memory.memory import ConversationMemory
from ..modules.retriever.web import WebSearch
from ..modules.settings import load_settings
from .conversation.conversation import Conversation
from .conversation.expiry import ExpiryReport, delete_old, now_utc
from .conversation.identity import is_conversation_id
from .conversation.record import ConversationRecord
from .conversation.services import ConversationServices
from .conversation.turn.context import ConversationOptions, TurnLimits, TurnMemory
from .conversation.turn.store import ConversationPage, ConversationSummary
from .rag.graph import RagGraph
from .session import RagSession
from .threads.recording import Recording


class Conversations:
    """Conversations over one collection, several at a time; use it in a ``with`` statement.

    ::

        with Conversations("standards", system="judge") as conversations:
            chat = conversations.conversation("monday")
            print(chat.ask("Which gasket seals a Rating F40 flange?"))
            print(chat.ask("And how hot may it become?"))

    Args:
        collection: Name of the collection to search; not needed for ``system="llm"``.
        options: How turns are answered.
        limits_of_prompts: How much of a conversation a prompt shows; None takes the limits of the settings.
        memory: Memory of all turns; None takes the Milvus collection of the settings.
        web: Web search of ``web_or_rag``; None takes SearXNG at the address in the settings, if there is one.
        **session: Arguments of ``RagSession`` by name: config, system, settings, and keys such as topk and judge.
    """

    def __init__(
        self,
        collection: str = "",
        *,
        options: ConversationOptions | None = None,
        limits_of_prompts: TurnLimits | None = None,
        memory: TurnMemory | None = None,
        web: WebSearch | None = None,
        **session: Any,
    ) -> None:
        # What is said in a conversation is recorded on request only.
        settings = session.setdefault("settings", load_settings())
        session.setdefault("recording", replace(Recording.of(settings), record=settings.record or "none"))
        self._session = RagSession(collection, **session)
        self._options = options or ConversationOptions()
        self.services = ConversationServices(self._session, limits_of_prompts=limits_of_prompts, memory=memory, web=web)
        """Services that the conversations share."""
        self.services.complete_options(self._options)  # reports mistakes now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def collection(self) -> str:
        """Name and address of the searched collection; ``""`` for a system without a search."""
        return self.services.collection

    @property
    def rag(self) -> RagGraph:
        """The graph that searches, whose threads are the turns' search trees."""
        return self.services.rag

    def conversation(self, name: str) -> Conversation:
        """Return the new or existing conversation of a name; nothing is read or written yet.

        A name is unique within one checkpoint store.

        Raises:
            SettingsError: The name is empty.
        """
        return Conversation(self.services, name, self._options)

    @blocking
    async def prepare(self) -> None:
        """Open collection, models, store and memory now instead of at the first question.

        Raises:
            UserError: The settings, collection, API key or model name need a correction.
        """
        await self.services.open()
        await self._session.open_services()

    aprepare = async_twin(prepare)

    @blocking
    async def summaries(self) -> list[ConversationSummary]:
        """Return the conversations of the store, the most recently updated first."""
        return list((await self.apage()).summaries)

    asummaries = async_twin(summaries)

    @blocking
    async def page(
        self,
        limit: int | None = None,
        *,
        offset: int = 0,
        prefix: str = "",
        is_hidden: Callable[[str], bool] = lambda _: False,
    ) -> ConversationPage:
        """Return a page of ``summaries``, and the number of all; only the states on the page are read.

        Args:
            limit: Most conversations; None for all.
            offset: Conversations before the first.
            prefix: What their names begin with, in ASCII.
            is_hidden: Says by its name whether a conversation is left out, and counted as hidden.
        """
        opened = await self.services.open()
        with self.services.store_errors():
            return await opened.store.page(limit, offset=offset, prefix=prefix, is_hidden=is_hidden)

    apage = async_twin(page)

    @blocking
    async def delete(self, name: str) -> int:
        """Delete a conversation with its turns in the memory and all its threads; returns the number of threads.

        Of a conversation of which the store has lost parts, all that is left and names it is deleted.

        Raises:
            UnknownConversation: The conversation does not exist.
        """
        async with self.services.hold(name) as opened:
            try:
                state = await opened.store.load(name)
            except LostParts:
                state = await opened.store.remains_of(name)
            if state is None:
                raise UnknownConversation(f"There is no conversation {name!r}. `judgetree conversations list`.")
            # The memory first: after a failure the conversation still exists and can be deleted again.
            if state["conversation_id"]:
                await asyncio.to_thread(opened.memory.delete_turns, state["conversation_id"])
            threads = await opened.store.threads_of(state)
            return await opened.store.delete_threads(threads, conversation_id=state["conversation_id"])

    adelete = async_twin(delete)

    @blocking
    async def delete_old_conversations(
        self,
        days: int,
        *,
        dry_run: bool = False,
        on_progress: Callable[[int, int], None] | None = None,
        clock: Callable[[], datetime] = now_utc,
    ) -> ExpiryReport:
        """Delete conversations without a new turn for ``days`` times 24 hours, with their turns and search trees.

        A conversation that is answering a question is skipped. Turns in the memory whose conversation was deleted are
        deleted too if the newest is that old and they belong to this checkpoint store: several stores may share a
        memory. After an interruption the next call deletes the rest.

        Args:
            days: Age in days, at least 1.
            dry_run: Report what would be deleted, and delete nothing.
            on_progress: Called, on judgetree's own thread, with (done, total) of the old conversations.
            clock: Returns the present time.

        Raises:
            SettingsError: ``days`` is not a whole number of at least 1, or the store fails.
            CollectionError: The memory fails.
        """
        opened = await self.services.open()
        with self.services.store_errors():
            return await delete_old(opened, days, dry_run=dry_run, on_progress=on_progress, clock=clock)

    adelete_old_conversations = async_twin(delete_old_conversations)

    @blocking
    async def cleanup_expired_conversations(
        self,
        *,
        dry_run: bool = False,
        on_progress: Callable[[int, int], None] | None = None,
        clock: Callable[[], datetime] = now_utc,
    ) -> ExpiryReport:
        """Call ``delete_old_conversations`` with the setting ``conversation_expire_days``."""
        return await self.adelete_old_conversations(
            self.services.settings.conversation_expire_days, dry_run=dry_run, on_progress=on_progress, clock=clock
        )

    acleanup_expired_conversations = async_twin(cleanup_expired_conversations)

    @blocking
    async def backfill(self, name: str | None = None, *, dry_run: bool = False) -> int:
        """Link turns that another program wrote into the memory, each to the turn before it; returns their number.

        See ``modules.memory.memory.backfill``. A second call finds no more turns. Turns under a name become turns of
        this store's conversation of that name. Conversations of other stores are not changed.

        Args:
            name: Name of the conversation; None for all.
            dry_run: Count the turns, and change nothing.

        Raises:
            SettingsError: The memory is not a ``ConversationMemory``.
            CollectionError: The memory fails.
        """
        opened = await self.services.open()
        memory = opened.memory
        if not isinstance(memory, ConversationMemory):
            raise SettingsError("Only a ConversationMemory can be backfilled. Give one as memory=…, or none.")
        names = {each.conversation_id: each.name for each in await self.asummaries()}
        unlinked = await asyncio.to_thread(memory.records_without_parent)
        owned: dict[str, list[str]] = {}
        for each in unlinked:
            owner = names.get(each, "" if is_conversation_id(each) else each)
            if owner and name in (None, owner):
                owned.setdefault(owner, []).append(each)
        if dry_run:
            return sum(len(unlinked[each]) for own in owned.values() for each in own)
        return sum(
            [await ConversationRecord(self.services, owner).backfill(memory, own) for owner, own in owned.items()]
        )

    abackfill = async_twin(backfill)

    @blocking
    async def close(self) -> None:
        """Close store and memory and free the collection; the next question opens them again."""
        await self.services.close()
        await self._session.aclose()

    aclose = async_twin(close)
