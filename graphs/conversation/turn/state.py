"""What a conversation remembers, and what one turn works on, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict, cast

from langchain_core.documents import Document

from ....modules.calls.usage import CallRecord, UsageTotals
from ....modules.formats import FORMAT_KEY, format_of, refuse_other_format
from ....modules.memory.turns import (
    MAIN_BRANCH,
    AnsweredFrom,
    Branch,
    ChunkRef,
    OpenTurn,
    QaPair,
    TurnStatus,
    new_branch,
)
from ...threads.state import merge_usage


class ConversationState(TypedDict, total=False):
    """One conversation. Its older turns are in the memory alone."""

    format: str
    conversation_id: str
    """Random, and made with the conversation; its turns in the memory, its threads and its search trees go by it."""
    name: str
    """What its users call it: a label that no other conversation of the same store has."""
    title: str
    """Its first question."""
    collection: str
    """The collection that its turns search, as in ``QaPair``; ``""`` before the first that searches one."""
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
    """Chunks of those turns: at first the best that fit, then those found useful."""
    passages: str
    """The same as a prompt shows them: in full, or digested."""
    standalone_query: str
    rewrite_problem: str
    """Why a rewrite could not be used; ``""``, or missing, where it could."""
    proposed_answer: str
    """The answer that earlier turns give, as the model says; missing where they give none."""
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


def new_conversation(name: str, conversation_id: str, now: str) -> ConversationState:
    """A conversation without a turn."""
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
    """The saved state of the conversation of that name.

    Raises:
        LoadingError: It has another format than judgetree reads.
    """
    refuse_other_format(
        saved.get(FORMAT_KEY),
        "conversation",
        where=f"The conversation {name!r}",
        remedy="Ask under another name, or read it with the judgetree that wrote it.",
    )
    return cast(ConversationState, saved)
