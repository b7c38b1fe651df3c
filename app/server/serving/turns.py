"""The events of a turn, asked for by an HTTP request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

from fastapi import Request

from ....graphs.conversation.turn.events import ConversationEvent, ErrorEvent, SessionEvent
from ....modules.memory.turns import rag_thread_of
from .streams import ClosableIterator, while_connected


class TurnEvents:
    """The events of a turn that has started; closing them early cancels the turn, which stays open."""

    def __init__(self, first: ConversationEvent, rest: ClosableIterator[ConversationEvent]) -> None:
        self._first: ConversationEvent | None = first
        self._rest = rest
        self.search_thread = (
            rag_thread_of(first.conversation_id, first.turn_id) if isinstance(first, SessionEvent) else ""
        )
        """Thread of the search tree, if the turn searches; ``""`` if that is unknown."""

    @classmethod
    async def begin(cls, request: Request, events: AsyncIterator[ConversationEvent]) -> Self:
        """Await the first event; a client that leaves meanwhile cancels the turn.

        Raises:
            UserError: The question cannot be asked; it has an HTTP status, since no event was sent.
        """
        assert isinstance(events, ClosableIterator)
        try:
            first = await while_connected(request, anext(events))
            if isinstance(first, ErrorEvent):
                first = await anext(events)  # raises what the event tells
        except BaseException:
            await events.aclose()
            raise
        return cls(first, events)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConversationEvent:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await anext(self._rest)

    async def aclose(self) -> None:
        """End the turn, if it runs."""
        await self._rest.aclose()
