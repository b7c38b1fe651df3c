"""Changes of a conversation's branches and open turn, as pure functions from its state."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from operator import itemgetter
from typing import cast

from ...modules.errors import SettingsError
from ...modules.memory.turns import MAIN_BRANCH, Branch, Branches, OpenTurn, QaPair, free_name, new_branch
from ...modules.storage.texts import check_id
from .request import FIRST, Request
from .turn.state import ConversationState


def resumable(
    state: ConversationState, request: Request, parent: QaPair | None, *, fingerprint: str
) -> OpenTurn | None:
    """Return the open turn if it has the request's id, or its question, parent and given history; None otherwise.

    A turn of another system, collection or ``fingerprint`` is another turn.

    Raises:
        RequestIdTaken: As ``Request.has_id_of``.
    """
    turn = state["open_turn"]
    if turn is None or turn.get("fingerprint", "") != fingerprint:
        return None
    if not request.has_system_of(turn):
        return None
    if request.has_id_of(turn):
        return turn
    if request.regenerate or (request.request_id and turn["request_id"]):
        return None
    known = turn["query"], turn["parent_turn_id"], turn.get("given_history", "")
    wanted = request.query, parent["turn_id"] if parent else FIRST, request.history_digest
    return turn if known == wanted else None


def check_collection(state: ConversationState, collection: str) -> None:
    """Check that the conversation has searched no other collection so far; ``""`` stands for no search.

    Raises:
        SettingsError: The conversation has searched another collection.
    """
    known = state["collection"]
    if collection and known and collection != known:
        raise SettingsError(
            f"The conversation {state['name']!r} searches the collection {known}, not {collection}. Name that "
            "collection, or another conversation; or let this one go on in the new collection, without the evidence of "
            "the old one: switch_collection=True, on the command line --switch-collection."
        )


def opened(
    state: ConversationState, request: Request, parent: QaPair | None, *, fingerprint: str
) -> tuple[OpenTurn, ConversationState]:
    """Open a turn after ``parent``; None opens a first turn. Returns the turn and the changes of the state.

    The turn belongs to the branch that ends with ``parent``, or to a new one. It replaces the turn that was open
    before, whose branch is deleted if it has no other turn.
    """
    branches = dict(state["branches"])
    abandoned = state["open_turn"]
    if abandoned is not None and _is_empty(branches[abandoned["branch_id"]]):
        del branches[abandoned["branch_id"]]
    active = state["active_branch"] if state["active_branch"] in branches else MAIN_BRANCH
    branch = _ending_at(branches, active, parent)
    if branch is None:
        branch = new_branch(uuid.uuid4().hex[:12], free_name(branches), forked_from=parent)
        branches[branch["branch_id"]] = branch
    turn = OpenTurn(
        turn_id=str(uuid.uuid4()),
        parent_turn_id=parent["turn_id"] if parent else "",
        branch_id=branch["branch_id"],
        turn_number=parent["turn_number"] + 1 if parent else 1,
        query=request.query,
        request_id=request.request_id,
        collection=request.collection,
        system=request.system,
        fingerprint=fingerprint,
    )
    if overrides := request.overrides.described():
        turn["overrides"] = overrides
    if request.chat_history:
        turn["given_history"] = request.history_digest
    searched = request.collection or state["collection"]
    return turn, ConversationState(branches=branches, active_branch=active, open_turn=turn, collection=searched)


def branch_named(branches: Branches, name: str) -> Branch:
    """Return the branch of a name.

    Raises:
        SettingsError: No branch has the name; the message lists all branches.
    """
    found = next((branch for branch in branches.values() if branch["name"] == name), None)
    if found is None:
        there = ", ".join(branch["name"] for branch in branches.values())
        raise SettingsError(f"There is no branch {name!r}. Branches: {there}.")
    return found


def switched(state: ConversationState, name: str) -> ConversationState:
    """Make a branch the active one.

    Raises:
        SettingsError: No branch has the name.
    """
    return ConversationState(active_branch=branch_named(state["branches"], name)["branch_id"])


def renamed(state: ConversationState, name: str, new_name: str) -> ConversationState:
    """Rename a branch.

    Raises:
        SettingsError: No branch has the name, or the new name is empty, taken, too long, or holds NUL or half a
            surrogate pair.
    """
    check_id("The new name of the branch", new_name)
    branch = branch_named(state["branches"], name)
    wanted = new_name.strip()
    if not wanted or any(b["name"] == wanted and b is not branch for b in state["branches"].values()):
        raise SettingsError(f"{new_name!r} cannot be a branch's name: it is {'taken' if wanted else 'empty'}.")
    changed = branch | {"name": wanted}
    return ConversationState(branches={**state["branches"], branch["branch_id"]: changed})


def without_branch(state: ConversationState, name: str) -> ConversationState:
    """Delete a branch and those of its turns that the state holds.

    Raises:
        SettingsError: No branch has the name, it is the main or the active branch, it has an open turn, or others fork
            from it.
    """
    branch = branch_named(state["branches"], name)
    branch_id, open_turn = branch["branch_id"], state["open_turn"]
    forks = [b["name"] for b in state["branches"].values() if b["parent_branch_id"] == branch_id]
    why = ""
    if branch_id == MAIN_BRANCH:
        why = "it is the first one; delete the conversation instead"
    elif branch_id == state["active_branch"]:
        why = "it is the active one; switch to another first"
    elif forks:
        why = f"{', '.join(forks)} fork from it; delete them first"
    elif open_turn is not None and open_turn["branch_id"] == branch_id:
        why = "a turn of it is not answered yet; ask its question again first"
    if why:
        raise SettingsError(f"The branch {name!r} cannot be deleted: {why}.")
    return ConversationState(
        branches={key: value for key, value in state["branches"].items() if key != branch_id},
        chat_history=[turn for turn in state["chat_history"] if turn["branch_id"] != branch_id],
    )


def without_last_turn(state: ConversationState, last: QaPair) -> ConversationState:
    """Delete the newest turn of the active branch, and an open turn that follows it.

    Raises:
        SettingsError: Another branch forks from the turn.
    """
    forks = [b["name"] for b in state["branches"].values() if b["forked_from"] == last["turn_id"]]
    if forks:
        raise SettingsError(f"The last turn cannot be undone: {', '.join(forks)} fork from it; delete them first.")
    branch = state["branches"][last["branch_id"]]
    head = {"head_turn_id": last["parent_turn_id"], "head_number": last["turn_number"] - 1}
    waiting = state["open_turn"]
    follows = waiting is not None and waiting["parent_turn_id"] == last["turn_id"]
    return ConversationState(
        open_turn=None if follows else waiting,
        branches={**state["branches"], last["branch_id"]: cast(Branch, branch | head)},
        chat_history=[turn for turn in state["chat_history"] if turn["turn_id"] != last["turn_id"]],
    )


def with_main_turns(state: ConversationState, turns: Sequence[QaPair]) -> ConversationState:
    """Let the main branch end with the last of its turns."""
    line = sorted((turn for turn in turns if turn["branch_id"] == MAIN_BRANCH), key=itemgetter("turn_number"))
    head = {"head_turn_id": line[-1]["turn_id"], "head_number": line[-1]["turn_number"]}
    main = cast(Branch, state["branches"][MAIN_BRANCH] | head)
    return ConversationState(
        title=state["title"] or line[0]["query"], branches={**state["branches"], MAIN_BRANCH: main}
    )


def _ending_at(branches: Branches, active: str, parent: QaPair | None) -> Branch | None:
    """Return a branch whose newest turn is ``parent``, preferably the active one; None without any."""
    wanted = parent["turn_id"] if parent else ""
    ordered = [branches[active], *branches.values()]
    return next((branch for branch in ordered if branch["head_turn_id"] == wanted), None)


def _is_empty(branch: Branch) -> bool:
    return branch["branch_id"] != MAIN_BRANCH and branch["head_turn_id"] == branch["forked_from"]
