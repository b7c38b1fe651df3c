"""What a conversation remembers, and what one turn works on, as plain data; older forms are brought up to date."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, TypedDict, cast

from langchain_core.documents import Document

from ...modules.errors import LoadingError
from ...modules.turns import (
    MAIN_BRANCH,
    AnsweredFrom,
    Branch,
    ChunkRef,
    OpenTurn,
    QaPair,
    TurnStatus,
    imported_turn,
    new_branch,
)
from ...modules.usage import CallRecord, UsageTotals
from ..state import merge_usage

SCHEMA_VERSION = 2
_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-636f6e760000")


class ConversationState(TypedDict, total=False):
    """One conversation. Its older turns are in the memory alone."""

    schema_version: int
    title: str
    """Its first question."""
    created_at: str
    updated_at: str
    """ISO 8601, UTC."""
    chat_history: list[QaPair]
    """The newest turns of all branches, in the order in which they were answered."""
    branches: dict[str, Branch]
    active_branch: str
    open_turn: OpenTurn | None


class TurnState(TypedDict, total=False):
    """One turn on its way from question to answer."""

    open_turn: OpenTurn
    history: list[QaPair]
    """Earlier turns of its path that a prompt shows, in their order."""
    summary: str
    """Of the turns before those; ``""`` where there is none."""
    to_fold: list[QaPair]
    """Turns that the summary is due to take in."""
    folded: bool
    """Whether it has."""
    selected: list[int] | None
    """Numbers of the turns that matter; None where the model could not say."""
    kept_chunks: list[Document]
    """Chunks of those turns: at first all, then those found useful."""
    passages: str
    """The same as a prompt shows them: in full, or digested."""
    standalone_query: str
    answer: str
    status: TurnStatus
    answered_from: AnsweredFrom
    chunks: list[ChunkRef]
    rag_thread_id: str
    rag_usage: UsageTotals
    usage: Annotated[list[CallRecord], merge_usage]
    """Of the turn's own calls; those of its search tree are with the tree."""
    turn: QaPair
    """What was saved in the end."""


def new_conversation(now: str) -> ConversationState:
    """A conversation that nobody has said anything in."""
    return ConversationState(
        schema_version=SCHEMA_VERSION,
        title="",
        created_at=now,
        updated_at=now,
        chat_history=[],
        branches={MAIN_BRANCH: new_branch(MAIN_BRANCH, MAIN_BRANCH)},
        active_branch=MAIN_BRANCH,
        open_turn=None,
    )


def migrate(saved: Mapping[str, object], conversation_id: str) -> ConversationState:
    """The state of a conversation as this version has it; one of this version is given back as it is.

    Version 1 had no branches, and of a turn no more than query, answer and timestamp, in the order of the list. Its
    turns get the same ids at every reading.

    Raises:
        LoadingError: A newer judgetree has written it, or it is damaged.
    """
    version = saved.get("schema_version", 1)
    if version == SCHEMA_VERSION:
        return cast(ConversationState, saved)
    if version != 1:
        raise LoadingError(
            f"The conversation {conversation_id!r} has schema version {version!r}; this judgetree reads up to "
            f"{SCHEMA_VERSION}. Use the judgetree that wrote it, or a newer one."
        )
    try:
        turns = _chained(cast(Sequence[Mapping[str, str]], saved.get("chat_history", ())), conversation_id)
    except (KeyError, TypeError, AttributeError) as error:
        raise LoadingError(
            f"The conversation {conversation_id!r} of schema version 1 is damaged: {error!r}."
        ) from error
    state = new_conversation(turns[0]["timestamp"] if turns else "")
    if turns:
        last = turns[-1]
        head = state["branches"][MAIN_BRANCH] | {"head_turn_id": last["turn_id"], "head_number": last["turn_number"]}
        state |= {"branches": {MAIN_BRANCH: head}, "chat_history": turns}
        state |= {"title": turns[0]["query"], "updated_at": last["timestamp"]}
    return state


def _chained(records: Sequence[Mapping[str, str]], conversation_id: str) -> list[QaPair]:
    turns: list[QaPair] = []
    for number, record in enumerate(records, start=1):
        turns.append(
            imported_turn(
                record["query"],
                record["answer"],
                parent=turns[-1] if turns else None,
                turn_id=str(uuid.uuid5(_NAMESPACE, f"{len(conversation_id)}:{conversation_id}:{number}")),
                timestamp=record["timestamp"],
            )
        )
    return turns
