"""``GET /v1/conversations``: the caller's conversations, and what each holds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ..serving.caller import CallerBy
from ..serving.segment_route import SegmentRoute
from ..serving.served import ServedBy
from .documents import ConversationDocument, ConversationItem, ConversationList, History, turns_of
from .paths import Name

router = APIRouter(prefix="/v1/conversations", tags=["conversations"], route_class=SegmentRoute)

MAX_LIMIT = 200


@router.get("")
async def conversations(
    served: ServedBy,
    caller: CallerBy,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    unnamed: Annotated[bool, Query(description="List those too whose requests named no conversation.")] = False,
) -> ConversationList:
    """List the caller's conversations, the most recently updated first; only those of the page are read.

    Those of one question each, which a program has asked without naming a conversation, are counted in ``hidden``
    alone, unless ``unnamed`` is set.

    One of a format that this judgetree does not read counts in ``total`` and is left out of ``data``.
    """
    page = await served.conversation_page(caller, limit=limit, offset=offset, unnamed=unnamed)
    items = [ConversationItem.of(summary, caller) for summary in page.summaries]
    return ConversationList(data=items, total=page.total, hidden=page.hidden, limit=limit, offset=offset)


@router.get("/{name}")
async def conversation(name: Name, served: ServedBy, caller: CallerBy) -> ConversationDocument:
    """Return a conversation with the turns of all its branches."""
    return ConversationDocument.of(await served.contents(caller, name), caller, served.prices)


@router.get("/{name}/history")
async def history(name: Name, served: ServedBy, caller: CallerBy) -> History:
    """Return the turns on the path to the newest turn of the active branch, oldest first."""
    contents = await served.contents(caller, name)
    document = ConversationDocument.of(contents, caller, served.prices)
    return History(
        active_branch=document.active_branch, turns=turns_of(contents.history(), contents.summary, served.prices)
    )
