"""Whether an open turn can be resumed, or collection and settings are others than when its search began."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from langchain_core.runnables import RunnableConfig

from ..config.given_keys import GivenKeys
from ..threads.fingerprint import EXTRA_INPUTS, fingerprint_of
from ..threads.snapshots import is_absent
from .services import ConversationServices, OpenStores
from .turn.context import ConversationOptions
from .turn.store import turn_thread


async def can_go_on(
    root: str, services: ConversationServices, opened: OpenStores, options: ConversationOptions, overrides: GivenKeys
) -> bool:
    """Return whether the turn whose search is the thread ``root`` has its search behind it, or can go on with it.

    Raises:
        UserError: The settings, the collection, a key, a model or an override needs a correction.
    """
    turn = await opened.graph.aget_state(_config(turn_thread(root)))
    if turn.values.get("rag_thread_id"):
        return True
    rag = services.rag
    search = await (await rag.aopen()).aget_state(_config(root))
    stored: Mapping[str, str] = {} if is_absent(search) else search.values.get("fingerprint") or {}
    if not stored:
        return True
    wanted = await asyncio.to_thread(
        fingerprint_of,
        query=stored["query"],
        system=rag.system,
        source=rag.source,
        services=(await services.open_models(options, overrides))[0],
        extra={name: stored[name] for name in EXTRA_INPUTS if name in stored},
    )
    return wanted == stored


def _config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}
