"""State of conversations and of turns as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict, cast

from langchain_core.documents import Document

from ....modules.calls.usage import CallRecord, UsageTotals
from ....modules.judge.insert_block import BlockReport
from ....modules.memory.turns import (
    MAIN_BRANCH,
    AnsweredFrom,
    Branch,
    ChunkRef,
    OpenTurn,
    QaPair,
    TurnStatus,
    UsedModel,
    new_branch,
)
from ....modules.storage.formats import FORMAT_KEY, check_format, format_of
from ...threads.state import merge_usage


class ConversationState(TypedDict, total=False):
    """State of one conversation; older turns are in the memory only."""

    format: str
    conversation_id: str
    """Random id that keys its turns in the memory, its threads and its search trees."""
    name: str
    """Name that is unique within the checkpoint store."""
    title: str
    """First question."""
    collection: str
    """Name and address of the collection that its turns search; ``""`` before the first search."""
    created_at: str
    updated_at: str
    """ISO 8601, UTC."""
    chat_history: list[QaPair]
    """Newest turns of all branches, in the order of their answers."""
    branches: dict[str, Branch]
    active_branch: str
    open_turn: OpenTurn | None
    revision: str
    """Id of the checkpoint that it was read from or saved as; missing before the first save, and never saved itself."""


class TurnState(TypedDict, total=False):
    """State of one turn."""

    open_turn: OpenTurn
    history: list[QaPair]
    """Earlier turns of its path that a prompt shows, oldest first."""
    unremembered: bool
    """True if the memory could not be reached, so that it may lack turns of the conversation's state."""
    summary: str
    """Summary of the turns before ``history``; ``""`` without one."""
    to_fold: list[QaPair]
    """Turns that are due to be folded into the summary."""
    folded: bool
    """True once ``summary`` covers ``to_fold``."""
    selected: list[int] | None
    """Numbers of the turns that matter, 0 for the summary; None if the model gave no usable reply."""
    kept_chunks: list[Document]
    """Chunks of the selected turns: the best that fit, after the assessment only the useful ones."""
    passages: str
    """The chosen chunks as a prompt shows them, in full or digested."""
    standalone_query: str
    rewrite_problem: str
    """Why a rewrite was not usable; ``""`` or missing if it was."""
    proposed_answer: str
    """Answer from earlier turns that the model proposes; missing without one."""
    answer: str
    status: TurnStatus
    answered_from: AnsweredFrom
    chunks: list[ChunkRef]
    rag_thread_id: str
    rag_usage: UsageTotals
    rag_models: list[UsedModel]
    insert_block: BlockReport | None
    """What the filter did; None or missing where it was not asked."""
    usage: Annotated[list[CallRecord], merge_usage]
    """Records of the turn's own calls; the search tree has those of the search."""
    turn: QaPair
    """The saved turn."""


def new_conversation(name: str, conversation_id: str, now: str) -> ConversationState:
    """Make the state of a conversation without turns."""
    return ConversationState(
        format=format_of("conversation"),
        conversation_id=conversation_id,
        name=name,
        title="",
        collection="",
        created_at=now,
        updated_at=now,
        chat_history=[],
        branches={MAIN_BRANCH: new_branch(MAIN_BRANCH, MAIN_BRANCH)},
        active_branch=MAIN_BRANCH,
        open_turn=None,
    )


def read_state(saved: Mapping[str, object], name: str) -> ConversationState:
    """Check the format of a saved state.

    Raises:
        LoadingError: The state has another format than judgetree reads.
    """
    check_format(
        saved.get(FORMAT_KEY),
        "conversation",
        where=f"The conversation {name!r}",
        remedy="Ask under another name, or read it with the judgetree that wrote it.",
    )
    return cast(ConversationState, saved)
