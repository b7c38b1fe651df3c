"""Random ids of checkpoint stores and of their conversations: a conversation's id begins with the id of its store.

Stores may share a memory. The prefix tells which store a turn belongs to, also after its conversation was deleted.
"""

from __future__ import annotations

import re
import uuid
from typing import TypedDict

from langchain_core.runnables import RunnableConfig

from ...modules.errors import LostParts
from ...modules.storage.formats import check_format, format_of
from ..threads.checkpoints import Saver, record_graph
from ..threads.snapshots import is_absent
from ..threads.thread_ids import STORE

_ID = re.compile(r"[0-9a-f]{32}\.[0-9a-f]{32}")
_CONFIG: RunnableConfig = {"configurable": {"thread_id": STORE}}


class _StoreState(TypedDict, total=False):
    format: str
    store_id: str


class StoreIdentity:
    """Reads and makes the id of a checkpoint store. Use it on the loop on which the saver was opened."""

    def __init__(self, saver: Saver) -> None:
        self._saver, self._graph = saver, record_graph(_StoreState, saver)

    async def find(self) -> str | None:
        """Return the store's id; None before ``make``. If the store has lost it, that of a conversation's id.

        Raises:
            LoadingError: The id is saved in another format.
        """
        try:
            snapshot = await self._graph.aget_state(_CONFIG)
        except LostParts:
            saved = self._saver.alist(None, filter={"kind": "conversation"}, limit=1)
            ids = [str(dict(each.metadata).get("conversation_id", "")) async for each in saved]
            return next((each.partition(".")[0] for each in ids if is_conversation_id(each)), None)
        if is_absent(snapshot):
            return None
        check_format(snapshot.values.get("format"), "store", where="The checkpoint store")
        return str(snapshot.values["store_id"])

    async def make(self) -> str:
        """Return the store's id, made at the first call. Only one process may call it at a time."""
        known = await self.find()
        if known is not None:
            return known
        store_id = uuid.uuid4().hex
        values = {"format": format_of("store"), "store_id": store_id}
        try:
            await self._graph.aupdate_state(_CONFIG, values, as_node="record")
        except LostParts:  # nothing that is left tells the id
            await self._saver.adelete_thread(STORE)
            await self._graph.aupdate_state(_CONFIG, values, as_node="record")
        return store_id


def new_conversation_id(store_id: str) -> str:
    """Make a random id for a conversation of a store."""
    return f"{store_id}.{uuid.uuid4().hex}"


def is_of_store(conversation_id: str, store_id: str) -> bool:
    """Return whether a conversation's id begins with the id of a store.

    >>> is_of_store(new_conversation_id("a"), "a"), is_of_store(new_conversation_id("ab"), "a")
    (True, False)
    """
    return conversation_id.startswith(f"{store_id}.")


def is_conversation_id(text: str) -> bool:
    """Return whether a text has the form of a conversation's id; other programs use names instead.

    >>> is_conversation_id(new_conversation_id(uuid.uuid4().hex)), is_conversation_id("monday")
    (True, False)
    """
    return _ID.fullmatch(text) is not None
