"""Turns of a conversation as plain data, linked by parents and forking into branches.

A turn belongs to the branch on which it was asked. Its history is its path to the first turn: the earlier turns of its
branch, then those of the parent branch up to the fork, and so on. A path of any length is therefore a few spans, one a
branch (``path_spans``).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from ..calls.tokens import message_tokens
from ..calls.usage import CallKind, UsageTotals, total_usage
from ..judge.insert_block import BlockReport

AnsweredFrom = Literal["search", "history", "web", "knowledge", "small_talk"]
"""Basis of an answer: a search of the collection, evidence of earlier turns, a web search, the model's knowledge, or
none for small talk."""
TurnStatus = Literal["answered", "refused"]

MAX_THINKING_CHARS = 8_000
"""Longest thinking that a turn keeps."""
MAIN_BRANCH = "main"
"""Id and initial name of a conversation's first branch."""

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-7475726e0000")


class ChunkRef(TypedDict):
    """A chunk that an answer rests on; its text is in the search tree that found it."""

    chunk_id: str
    source: str
    score: int | None
    """The judge's score: 0, 1 or 2; None if it gave none."""
    retrieval_score: float | None
    thread_id: str
    """Thread whose state holds the chunk."""
    title: NotRequired[str]
    """Title of its document; missing where the name of its file says as much, and in turns of older versions."""
    key_passage: NotRequired[str]
    """Quotation of the chunk that the answer needs; ``""`` without one, missing where ``insert_block`` was off."""
    reason: NotRequired[str]
    """Why the chunk belongs to the answer, or why that is unknown; missing where ``insert_block`` was off."""


class UsedModel(TypedDict):
    """The fields of ``calls.prices.ModelUsage``, as plain data."""

    model: str
    kind: CallKind
    calls: int
    uncounted_calls: int
    estimated_calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    cached_calls: int
    cached_estimated_calls: int
    cached_prompt_tokens: int
    cached_completion_tokens: int
    cached_seconds: float
    interrupted_calls: int
    interrupted_prompt_tokens: int
    interrupted_completion_tokens: int
    unreported_prompt_tokens: NotRequired[int]
    """Missing in turns of older versions, as is the next."""
    unreported_completion_tokens: NotRequired[int]


class QaPair(TypedDict):
    """One turn: a question, its answer, and what it rests on."""

    turn_id: str
    parent_turn_id: str
    """``""`` for a first turn."""
    branch_id: str
    turn_number: int
    """Length of the path to the root: 1 for a first turn."""
    query: str
    """The question in the user's words."""
    standalone_query: str
    """The model's interpretation of the question without its context, which is searched for."""
    rewrite_problem: str
    """Why the user's words were searched for instead of a rewrite; ``""`` if the rewrite was usable or not needed."""
    answer: str
    status: TurnStatus
    answered_from: AnsweredFrom
    chunks: list[ChunkRef]
    needed_chat_history: list[str] | None
    """Ids of the earlier turns that the model selected for the question, in the order of the path; None without a
    selection."""
    collection: str
    """Name and address of the searched collection; ``""`` for none."""
    timestamp: str
    """Time of the answer: ISO 8601, UTC."""
    token_count: int
    """Estimated tokens of question and answer in a prompt."""
    rag_thread_id: str
    """Root of its search tree; ``""`` without a search."""
    request_id: str
    """The caller's own id of the request; ``""`` for none."""
    summary: str
    """Summary of the path up to this turn; ``""`` if none was made here."""
    usage: UsageTotals
    """Usage of all its model calls, search tree included."""
    models: NotRequired[list[UsedModel]]
    """Usage by model, of the turn's own calls and then of its search tree; missing in turns of earlier versions."""
    overrides: NotRequired[dict[str, str]]
    """What the question had otherwise than its session, such as its model; missing without any."""
    given_history: NotRequired[str]
    """Digest of a history that the caller kept; missing for the conversation's own history."""
    system: NotRequired[str]
    """Name of the system that answered; missing in turns of earlier versions."""
    insert_block: NotRequired[BlockReport]
    """How many candidates the filter took out; missing where it was not asked."""
    thinking: NotRequired[str]
    """The model's thinking before the answer, its last ``MAX_THINKING_CHARS``; missing where none was streamed."""


class OpenTurn(TypedDict):
    """A started turn without an answer."""

    turn_id: str
    parent_turn_id: str
    branch_id: str
    turn_number: int
    query: str
    request_id: str
    collection: str
    """Name and address of the searched collection; ``""`` for none."""
    fingerprint: NotRequired[str]
    """Digest of the turn's options, limits, prompts and overrides; another digest is another turn."""
    overrides: NotRequired[dict[str, str]]
    """What the question has otherwise than its session; missing without any."""
    given_history: NotRequired[str]
    """Digest of a history that the caller keeps; missing for the conversation's own history."""
    system: NotRequired[str]
    """Name of the system that answers; missing in turns of earlier versions."""


class Branch(TypedDict):
    """A line of turns, from a fork or from the start of the conversation."""

    branch_id: str
    name: str
    parent_branch_id: str
    """Branch of the turn it forked from; ``""`` if it starts the conversation."""
    forked_from: str
    """Id of the turn it forked from; ``""`` if it starts the conversation."""
    fork_number: int
    """Number of the turn it forked from; 0 if it starts the conversation."""
    head_turn_id: str
    """Id of its newest turn, or of the fork while it has no turn of its own."""
    head_number: int
    """Number of its newest turn."""


Branches = Mapping[str, Branch]
"""Branches by id."""
PathSpans = Mapping[str, int]
"""Number of the last turn on a path, by branch."""


def new_branch(branch_id: str, name: str, *, forked_from: QaPair | None = None) -> Branch:
    """Return a branch without turns of its own, forked from a turn or starting a conversation."""
    return Branch(
        branch_id=branch_id,
        name=name,
        parent_branch_id=forked_from["branch_id"] if forked_from else "",
        forked_from=forked_from["turn_id"] if forked_from else "",
        fork_number=forked_from["turn_number"] if forked_from else 0,
        head_turn_id=forked_from["turn_id"] if forked_from else "",
        head_number=forked_from["turn_number"] if forked_from else 0,
    )


def free_name(branches: Branches) -> str:
    """Return the first of ``branch-2``, ``branch-3``, … that no branch has."""
    taken = {branch["name"] for branch in branches.values()}
    return next(name for number in range(2, len(taken) + 3) if (name := f"branch-{number}") not in taken)


def path_spans(branches: Branches, branch_id: str, last_number: int) -> dict[str, int]:
    """Return the last turn number of each branch on the path to a turn; empty for no turn."""
    spans: dict[str, int] = {}
    while branch_id and last_number > 0 and branch_id not in spans:
        branch = branches[branch_id]
        if last_number > branch["fork_number"]:
            spans[branch_id] = last_number
        last_number = min(last_number, branch["fork_number"])
        branch_id = branch["parent_branch_id"]
    return spans


def is_on_path(turn: QaPair, spans: PathSpans) -> bool:
    """Return whether a turn is on the path of the spans."""
    return turn["turn_number"] <= spans.get(turn["branch_id"], 0)


def rag_thread_of(conversation_id: str, turn_id: str) -> str:
    """Return the root thread of a turn's search tree, a function of the two ids."""
    return str(uuid.uuid5(_NAMESPACE, f"{len(conversation_id)}:{conversation_id}:{turn_id}"))


def merge_refs(turns: Iterable[QaPair]) -> list[ChunkRef]:
    """Return the chunks of several turns, each once with its best score; best first, newer turns first among equals."""
    newest_first = sorted(turns, key=lambda turn: turn["turn_number"], reverse=True)
    return best_refs(ref for turn in newest_first for ref in turn["chunks"])


def best_refs(refs: Iterable[ChunkRef]) -> list[ChunkRef]:
    """Return each chunk once with its best score, best first; equals stay in order."""
    best: dict[str, ChunkRef] = {}
    for ref in refs:
        known = best.get(ref["chunk_id"])
        if known is None or _worth(ref) > _worth(known):
            best.pop(ref["chunk_id"], None)  # moves it to the place of its better score
            best[ref["chunk_id"]] = ref
    return sorted(best.values(), key=_worth, reverse=True)


def _worth(ref: ChunkRef) -> tuple[float, float]:
    score, retrieval_score = ref["score"], ref["retrieval_score"]
    return 0.5 if score is None else float(score), float("-inf") if retrieval_score is None else retrieval_score


def count_tokens(*texts: str) -> int:
    """Estimate the tokens of the texts together, each as a message."""
    return message_tokens([("user", text) for text in texts])


def utc_now() -> str:
    """Return the present time in ISO 8601, UTC, with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def given_id(number: int) -> str:
    """Return the id of turn ``number``, from 1, of a history that the caller keeps."""
    return f"given-{number}"


def imported_turn(query: str, answer: str, *, parent: QaPair | None, turn_id: str, timestamp: str) -> QaPair:
    """Return a turn of which only question and answer are known, from another program or an older record."""
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
