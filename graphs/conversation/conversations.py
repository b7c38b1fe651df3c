"""All conversations over one collection: their services, their store and their memory, opened once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self, Unpack

from ...modules.background_loop import async_twin, blocking
from ...modules.errors import SettingsError
from ...modules.memory.memory import ConversationMemory
from ...modules.retriever.web import WebSearch
from ..rag.graph import RagGraph
from ..session import SessionOptions
from .conversation import Conversation
from .expiry import ExpiryReport, delete_old, now_utc
from .identity import is_conversation_id
from .record import ConversationRecord
from .services import ConversationServices
from .turn.context import ConversationOptions, TurnLimits, TurnMemory
from .turn.store import ConversationSummary

_MEMORY_EMBEDDINGS = "local:use"
"""Where the settings leave the choice to the documents' language: one memory serves collections of any."""


class Conversations:
    """Conversations over one collection, as many at a time as there are; use it in a ``with`` statement.

    ::

        with Conversations("standards", system="judge") as conversations:
            chat = conversations.conversation("monday")
            print(chat.ask("Which gasket seals a Rating F40 flange?"))
            print(chat.ask("And how hot may it become?"))

    Args:
        collection: Name of the collection that is searched; not needed for ``system="llm"``.
        options: How conversations are led.
        limits_of_prompts: How much of a conversation a prompt shows; None takes the settings'.
        memory: Where all turns are remembered; None takes the settings' Milvus collection.
        web: Where ``web_or_rag`` searches the web; None takes SearXNG at the settings' address, if they name one.
        **session: The keyword arguments of ``RagSession``: system, topk, judge, limits, settings, …
    """

    def __init__(
        self,
        collection: str = "",
        *,
        options: ConversationOptions | None = None,
        limits_of_prompts: TurnLimits | None = None,
        memory: TurnMemory | None = None,
        web: WebSearch | None = None,
        **session: Unpack[SessionOptions],
    ) -> None:
        self.services = ConversationServices(
            collection, options=options, limits_of_prompts=limits_of_prompts, memory=memory, web=web, session=session
        )
        """What its conversations share."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def collection(self) -> str:
        """See ``ConversationServices.collection``."""
        return self.services.collection

    @property
    def rag(self) -> RagGraph:
        """The graph that searches, whose threads are the turns' search trees."""
        return self.services.rag

    def conversation(self, name: str) -> Conversation:
        """The conversation of that name, be it new or not; nothing is read or written yet.

        A name is a label within one checkpoint store: those of another store have nothing to do with each other.

        Raises:
            SettingsError: The name is empty.
        """
        return Conversation(self.services, name)

    @blocking
    async def prepare(self) -> None:
        """Open collection, models, store and memory now rather than at the first question.

        Raises:
            UserError: Something to mend: settings, collection, key, model name.
        """
        await self.services.prepare()

    aprepare = async_twin(prepare)

    @blocking
    async def summaries(self) -> list[ConversationSummary]:
        """All conversations of the store, the one that was last spoken in first."""
        opened = await self.services.open()
        with self.services.store_errors():
            return await opened.store.summaries()

    asummaries = async_twin(summaries)

    @blocking
    async def delete(self, name: str) -> int:
        """Delete a conversation with its turns in the memory and all its threads; how many threads that were.

        Raises:
            SettingsError: There is no such conversation.
        """
        opened = await self.services.open()
        async with opened.locks.hold(name):
            with self.services.store_errors():
                state = await opened.store.load(name)
                if state is None:
                    raise SettingsError(f"There is no conversation {name!r}. `judgetree conversations list`.")
                # The memory first: what is left after a failure is still a conversation, which can be deleted again.
                await asyncio.to_thread(opened.memory.delete_turns, state["conversation_id"])
                return await opened.store.delete_threads(await opened.store.threads_of(state))

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
        """Delete the conversations that nobody has spoken in for ``days`` times 24 hours or longer, with all they have.

        One that is answering a question is left alone. Turns in the memory whose conversation is gone are deleted too,
        as soon as the newest of them is that old, but only those of this checkpoint store: a memory may be shared by
        several. After an interruption the next call does the rest.

        Args:
            days: At least 1.
            dry_run: Say what would go, and delete nothing.
            on_progress: Called, on judgetree's own thread, with (done, total) of all that is old.
            clock: The time it is.

        Raises:
            SettingsError: ``days`` is not such a number, or the store fails.
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
        """``delete_old_conversations`` with the setting ``conversation_expire_days``."""
        return await self.adelete_old_conversations(
            self.services.settings.conversation_expire_days, dry_run=dry_run, on_progress=on_progress, clock=clock
        )

    acleanup_expired_conversations = async_twin(cleanup_expired_conversations)

    @blocking
    async def backfill(self, name: str | None = None, *, dry_run: bool = False) -> int:
        """Put turns that another program has written into the memory in a line; how many there are.

        See ``memory_backfill.backfill``. Done again it finds nothing to do. Turns that the other program wrote under a
        name become turns of this store's conversation of that name; those of another store's conversations are left
        alone.

        Args:
            name: One conversation; None for all.
            dry_run: Count, and change nothing.

        Raises:
            SettingsError: The memory was given, and is none of judgetree's.
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

    aclose = async_twin(close)
