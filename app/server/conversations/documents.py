"""Conversations and their turns as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from pydantic import BaseModel

from ....graphs.conversation.conversation import ConversationContents
from ....graphs.conversation.turn.store import ConversationSummary
from ....modules.calls.prices import Prices
from ....modules.memory.costs import cost_of_turn
from ....modules.memory.turns import AnsweredFrom, OpenTurn, QaPair, TurnStatus
from ..serving.caller import Caller


class TurnUsage(BaseModel):
    """The model calls of a turn, its search included."""

    llm_calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Sum of the calls' own times, which overlap."""


class Source(BaseModel):
    """A chunk that an answer rests on."""

    number: int
    """Its place, from 1: first what the reader was shown, by its numbers there, then others, best first."""
    chunk_id: str
    source: str
    """Name or address of its document."""
    title: str = ""
    """Title of its document; empty if the name of its file says as much."""
    score: int | None
    """The judge's score, 0 to 2; null without one."""
    thread_id: str
    """Search thread that found it, whose tree has its text; empty for a page of the web."""


class Turn(BaseModel):
    """A question and its answer."""

    turn_id: str
    parent_turn_id: str
    """Empty for a first turn."""
    branch: str
    """Name of its branch."""
    turn_number: int
    """Length of the path to it, from 1."""
    query: str
    standalone_query: str
    """What was searched for."""
    rewrite_problem: str
    """Why the user's words were searched for and no rewrite; empty for none."""
    thinking: str
    """What the model thought before the answer; empty without."""
    answer: str
    status: TurnStatus
    answered_from: AnsweredFrom
    sources: list[Source]
    collection: str
    overrides: dict[str, str]
    """What the question had otherwise than the server."""
    rag_thread_id: str
    """Search tree; empty without a search."""
    request_id: str
    usage: TurnUsage
    cost_usd: float | None
    """US dollars of all its calls, search included; null where a price is unknown, as for earlier versions' turns."""
    timestamp: str
    """ISO 8601, UTC."""

    @classmethod
    def of(cls, turn: QaPair, branches: Mapping[str, str], prices: Prices) -> Self:
        """Make the document of a turn; ``branches`` are names by id."""
        return cls.model_validate(
            {
                "overrides": {},
                "thinking": "",
                **turn,
                "branch": branches.get(turn["branch_id"], ""),
                "collection": _name_of(turn["collection"]),
                "sources": [{"number": number, **ref} for number, ref in enumerate(turn["chunks"], start=1)],
                "cost_usd": cost_of_turn(turn, prices).usd,
            }
        )


class UnansweredTurn(BaseModel):
    """A started turn without an answer, which runs or which the same question resumes."""

    turn_id: str
    parent_turn_id: str
    branch: str
    turn_number: int
    query: str
    request_id: str
    collection: str

    @classmethod
    def of(cls, turn: OpenTurn, branches: Mapping[str, str]) -> Self:
        """Make the document of an open turn."""
        return cls.model_validate(
            {**turn, "branch": branches.get(turn["branch_id"], ""), "collection": _name_of(turn["collection"])}
        )


class ConversationItem(BaseModel):
    """A conversation in the list."""

    name: str
    title: str
    """First question, also while it has no answer."""
    collection: str
    """Collection that it searched last, or that its unanswered first question searches; empty for none."""
    turns: int
    """Number of turns on all branches."""
    branches: list[str]
    active_branch: str
    created_at: str
    updated_at: str
    """ISO 8601, UTC."""

    @classmethod
    def of(cls, summary: ConversationSummary, caller: Caller) -> Self:
        """Make the document of a conversation of the caller."""
        return cls(**_head(summary, caller), turns=summary.turns, branches=[each["name"] for each in summary.branches])


class ConversationList(BaseModel):
    """A part of the caller's conversations, the most recently updated first."""

    object: Literal["list"] = "list"
    data: list[ConversationItem]
    total: int
    """Number of the caller's conversations, without the hidden ones."""
    hidden: int
    """Number of those that are left out, since their requests named none."""
    limit: int
    offset: int


class BranchItem(BaseModel):
    """A branch of a conversation."""

    name: str
    forked_from: str
    """Turn that it forks from; empty if it starts the conversation."""
    turns: int
    """Length of its path."""
    head_turn_id: str
    """Its newest turn."""


class ConversationDocument(BaseModel):
    """A conversation with all its turns."""

    name: str
    title: str
    collection: str
    turns: list[Turn]
    """Turns of all branches, in the order of their answers."""
    branches: list[BranchItem]
    active_branch: str
    open_turn: UnansweredTurn | None
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, contents: ConversationContents, caller: Caller, prices: Prices) -> Self:
        """Make the document of a conversation of the caller."""
        summary = contents.summary
        names = branch_names(summary)
        return cls(
            **_head(summary, caller),
            turns=turns_of(contents.turns, summary, prices),
            branches=branch_items(summary),
            open_turn=UnansweredTurn.of(summary.open_turn, names) if summary.open_turn else None,
        )


class History(BaseModel):
    """The turns of the active branch's path, oldest first."""

    active_branch: str
    turns: list[Turn]


def turns_of(turns: Sequence[QaPair], summary: ConversationSummary, prices: Prices) -> list[Turn]:
    """Make the documents of turns, in their order."""
    names = branch_names(summary)
    return [Turn.of(turn, names, prices) for turn in turns]


def branch_items(summary: ConversationSummary) -> list[BranchItem]:
    """Make the documents of a conversation's branches."""
    return [
        BranchItem(
            name=branch["name"],
            forked_from=branch["forked_from"],
            turns=branch["head_number"],
            head_turn_id=branch["head_turn_id"],
        )
        for branch in summary.branches
    ]


def branch_names(summary: ConversationSummary) -> dict[str, str]:
    """Return the names of a conversation's branches by id."""
    return {branch["branch_id"]: branch["name"] for branch in summary.branches}


def _name_of(collection: str) -> str:
    """Return the name of a collection without the address of its database, which is the server's own affair."""
    return collection.partition(" in ")[0]


def _head(summary: ConversationSummary, caller: Caller) -> dict[str, str]:
    first = None if summary.title else summary.open_turn
    return {
        "name": caller.shown_name(summary.name) or "",
        "title": first["query"] if first else summary.title,
        "collection": _name_of(first["collection"] if first else summary.collection),
        "active_branch": branch_names(summary)[summary.active_branch],
        "created_at": summary.created_at,
        "updated_at": summary.updated_at,
    }
