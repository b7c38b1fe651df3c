"""Turns of a conversation as plain data, and how they hang together: each has a parent, and branches fork.

A turn belongs to the branch on which it was asked. The history of a turn is its path to the first one: the turns of its
own branch before it, then those of the branch that it forked from up to the fork, and so on. So a few spans (see
``path_spans``) tell of any turn whether it is on a path, however long the path is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from ..calls.tokens import message_tokens
from ..calls.usage import UsageTotals, total_usage

AnsweredFrom = Literal["search", "history", "web", "knowledge", "small_talk"]
"""What an answer rests on: a search of the collection, evidence of earlier turns, a web search, what the model knows,
or nothing, where nothing was asked."""
TurnStatus = Literal["answered", "refused"]

MAIN_BRANCH = "main"
"""Id and first name of the branch that every conversation begins with."""

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-7475726e0000")


class ChunkRef(TypedDict):
    """A chunk that an answer rests on. Its text stands in the search tree that found it."""

    chunk_id: str
    source: str
    score: int | None
    """The judge's: 0, 1 or 2; None where it gave none."""
    retrieval_score: float | None
    thread_id: str
    """The thread whose state holds the chunk."""


class QaPair(TypedDict):
    """One turn: a question, its answer, and what it rests on."""

    turn_id: str
    parent_turn_id: str
    """``""`` for a first turn."""
    branch_id: str
    turn_number: int
    """Length of the path to the root: 1 for a first turn."""
    query: str
    """As it was asked."""
    standalone_query: str
    """As it is understood without the turns before it: the model's interpretation, which is searched for."""
    rewrite_problem: str
    """Why the user's own words were searched for in place of the model's rewrite; ``""`` where it was usable, or none
    was needed."""
    answer: str
    status: TurnStatus
    answered_from: AnsweredFrom
    chunks: list[ChunkRef]
    needed_chat_history: list[str] | None
    """Ids of the earlier turns that the question needs, as the model has selected them, in the order of the path; None
    where it was not asked or could not say."""
    collection: str
    """The collection that it was asked over: name and address; ``""`` where there was none to search."""
    timestamp: str
    """When it was answered: ISO 8601, UTC."""
    token_count: int
    """About what question and answer take of a prompt."""
    rag_thread_id: str
    """Root of its search tree; ``""`` where nothing was searched for."""
    request_id: str
    """The caller's own name for the request; ``""`` where it gave none."""
    summary: str
    """Of its path up to and with this turn; ``""`` where none was made here."""
    usage: UsageTotals
    """Of all its model calls, search tree included."""


class OpenTurn(TypedDict):
    """A turn that has begun and is not answered yet."""

    turn_id: str
    parent_turn_id: str
    branch_id: str
    turn_number: int
    query: str
    request_id: str
    collection: str
    """As in ``QaPair``."""
    fingerprint: NotRequired[str]
    """Digest of how the turn is led: options, limits and prompts. Led otherwise, it is another turn."""
    given_history: NotRequired[str]
    """Digest of a history that the caller keeps; ``""``, or missing, where the conversation's own counts."""


class Branch(TypedDict):
    """A line of turns: from its fork on, or from the beginning."""

    branch_id: str
    name: str
    parent_branch_id: str
    """The branch that holds the turn it forked from; ``""`` if it begins with a first turn."""
    forked_from: str
    """That turn; ``""`` as above."""
    fork_number: int
    """That turn's number; 0 as above."""
    head_turn_id: str
    """Its newest turn; that of the fork while it has none of its own."""
    head_number: int
    """Its newest turn's number."""


Branches = Mapping[str, Branch]
"""By id."""
PathSpans = Mapping[str, int]
"""Branch to the number of its last turn on a path."""


def new_branch(branch_id: str, name: str, *, forked_from: QaPair | None = None) -> Branch:
    """Return a branch without turns of its own, which forks from a turn or begins a conversation."""
    return Branch(
        branch_id=branch_id,
        name=name,
        parent_branch_id=forked_from["branch_id"] if forked_from else "",
        forked_from=forked_from["turn_id"] if forked_from else "",
        fork_number=forked_from["turn_number"] if forked_from else 0,
        head_turn_id=forked_from["turn_id"] if forked_from else "",
        head_number=forked_from["turn_number"] if forked_from else 0,
    )


def path_spans(branches: Branches, branch_id: str, last_number: int) -> dict[str, int]:
    """Which turns of which branches are on the path to turn ``last_number`` of a branch; empty for no turn at all."""
    spans: dict[str, int] = {}
    while branch_id and last_number > 0 and branch_id not in spans:
        branch = branches[branch_id]
        if last_number > branch["fork_number"]:
            spans[branch_id] = last_number
        last_number = min(last_number, branch["fork_number"])
        branch_id = branch["parent_branch_id"]
    return spans


def is_on_path(turn: QaPair, spans: PathSpans) -> bool:
    """Return whether a turn is on the path that the spans stand for."""
    return turn["turn_number"] <= spans.get(turn["branch_id"], 0)


def rag_thread_of(conversation_id: str, turn_id: str) -> str:
    """The root thread of a turn's search tree: always the same one for the same turn of the same conversation."""
    return str(uuid.uuid5(_NAMESPACE, f"{len(conversation_id)}:{conversation_id}:{turn_id}"))


def merge_refs(turns: Iterable[QaPair]) -> list[ChunkRef]:
    """The chunks of several turns, each once, with its best score; best first, of equals the newer turn's first."""
    newest_first = sorted(turns, key=lambda turn: turn["turn_number"], reverse=True)
    return best_refs(ref for turn in newest_first for ref in turn["chunks"])


def best_refs(refs: Iterable[ChunkRef]) -> list[ChunkRef]:
    """Return each chunk once, with its best score; best first, of equals in their order."""
    best: dict[str, ChunkRef] = {}
    for ref in refs:
        known = best.get(ref["chunk_id"])
        if known is None or _worth(ref) > _worth(known):
            best.pop(ref["chunk_id"], None)  # it takes the place where it was found better
            best[ref["chunk_id"]] = ref
    return sorted(best.values(), key=_worth, reverse=True)


def _worth(ref: ChunkRef) -> tuple[float, float]:
    """Return an unjudged chunk lies between one that was found useless and one that holds a part."""
    score, retrieval_score = ref["score"], ref["retrieval_score"]
    return 0.5 if score is None else float(score), float("-inf") if retrieval_score is None else retrieval_score


def count_tokens(*texts: str) -> int:
    """About how many tokens the texts have together, each as a message; for budgets, not for bills."""
    return message_tokens([("user", text) for text in texts])


def utc_now() -> str:
    """Return the time as turns keep it: ISO 8601, UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def given_id(number: int) -> str:
    """Id of turn ``number``, from 1 on, of a history that the caller keeps."""
    return f"given-{number}"


def imported_turn(query: str, answer: str, *, parent: QaPair | None, turn_id: str, timestamp: str) -> QaPair:
    """Return a turn of which no more is known than what was said: one of another program, or of an older record."""
    return QaPair(
        turn_id=turn_id,
        parent_turn_id=parent["turn_id"] if parent else "",
        branch_id=MAIN_BRANCH,
        turn_number=parent["turn_number"] + 1 if parent else 1,
        query=query,
        standalone_query=query,
        rewrite_problem="",
        answer=answer,
        status="answered" if answer else "refused",
        answered_from="knowledge",
        chunks=[],
        needed_chat_history=None,
        collection="",
        timestamp=timestamp,
        token_count=count_tokens(query, answer),
        rag_thread_id="",
        request_id="",
        summary="",
        usage=total_usage(()),
    )
