"""Changes of conversations: branches are switched, renamed and deleted, turns undone, conversations deleted."""

from __future__ import annotations

from contextlib import suppress

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from ....graphs.conversation.conversation import Conversation
from ....modules.errors import LostParts
from ....modules.storage.texts import MAX_ID_BYTES
from ..serving.caller import Caller, CallerBy
from ..serving.errors import ApiError
from ..serving.segment_route import SegmentRoute
from ..serving.served import Served, ServedBy
from ..serving.streams import while_connected
from .documents import BranchItem, Turn, branch_items
from .paths import BranchName, Name

router = APIRouter(prefix="/v1/conversations", tags=["conversations"], route_class=SegmentRoute)


class BranchRequest(BaseModel):
    """A branch to switch to, or to rename."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"branch": "branch-2"}})

    branch: str = Field(min_length=1, max_length=MAX_ID_BYTES)
    new_name: str | None = Field(default=None, min_length=1, max_length=MAX_ID_BYTES)
    """New name of the branch; null makes it the active one."""


class BranchList(BaseModel):
    """The branches of a conversation."""

    active_branch: str
    branches: list[BranchItem]


class UndoRequest(BaseModel):
    """The turn that is to be deleted."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"turn_id": "3f1c"}})

    turn_id: str | None = Field(default=None, min_length=1, max_length=MAX_ID_BYTES)
    """Id of the newest turn of the active branch; another one is refused. null deletes whichever is the newest."""


class DeletedTurns(BaseModel):
    """What a deletion took."""

    deleted_turns: int


@router.delete("/{name}", status_code=204, response_class=Response)
async def delete(request: Request, name: Name, served: ServedBy, caller: CallerBy) -> None:
    """Delete a conversation with its turns and search trees, once a turn that runs has ended."""
    with suppress(LostParts):  # what is left of one is deleted, too
        await served.conversation(caller, name)
    await while_connected(request, (await served.any_conversations()).adelete(caller.stored_name(name)))


@router.post("/{name}/branch")
async def change_branch(
    request: Request, name: Name, body: BranchRequest, served: ServedBy, caller: CallerBy
) -> BranchList:
    """Make a branch the active one, which the next question continues; with ``new_name``, rename it instead."""
    conversation = await _with_branch(served, caller, name, body.branch)
    if body.new_name is None:
        await while_connected(request, conversation.aswitch(body.branch))
    else:
        await while_connected(request, conversation.arename_branch(body.branch, body.new_name))
    summary = (await served.contents(caller, name)).summary
    branches = branch_items(summary)
    active = next(each["name"] for each in summary.branches if each["branch_id"] == summary.active_branch)
    return BranchList(active_branch=active, branches=branches)


@router.delete("/{name}/branches/{branch}")
async def delete_branch(
    request: Request, name: Name, branch: BranchName, served: ServedBy, caller: CallerBy
) -> DeletedTurns:
    """Delete a branch with its turns and their search trees; neither the first branch nor the active one."""
    conversation = await _with_branch(served, caller, name, branch)
    return DeletedTurns(deleted_turns=await while_connected(request, conversation.adelete_branch(branch)))


@router.post("/{name}/undo")
async def undo(
    request: Request, name: Name, served: ServedBy, caller: CallerBy, body: UndoRequest | None = None
) -> Turn:
    """Delete the newest turn of the active branch with its search tree, and return it.

    A client that shows turns names the one that it means: another client may have asked or deleted meanwhile.
    """
    conversation = await served.conversation(caller, name)
    names = {each["branch_id"]: each["name"] for each in await conversation.abranches()}
    return Turn.of(
        await while_connected(request, conversation.aundo(body.turn_id if body else None)), names, served.prices
    )


async def _with_branch(served: Served, caller: Caller, name: str, branch: str) -> Conversation:
    """Return a conversation of the caller that has the branch.

    Raises:
        ApiError: HTTP 404: there is no such conversation, or no such branch.
    """
    conversation = await served.conversation(caller, name)
    if branch not in [each["name"] for each in await conversation.abranches()]:
        raise ApiError.not_found("branch", branch)
    return conversation
