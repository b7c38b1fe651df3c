"""A conversation with its search trees as a JSON document, and back without loss."""

from __future__ import annotations

from typing import Literal, TypedDict, cast

from pydantic import BaseModel, ConfigDict

from ....modules.formats import FORMAT_KEY, format_of
from ....modules.memory.turns import AnsweredFrom, Branch, OpenTurn, QaPair, TurnStatus
from ...rag.search_tree import SearchTree
from ...tree.document import read_tree_document, tree_document
from ...tree.json_documents import check_document, parse_json, write_document
from .turn_tree import TurnTree

_WHAT = "conversation tree"
_STRICT = ConfigDict(extra="forbid", strict=True)

# The document's schema stands apart from the turns', so that a change of those does not change the format.


class _ChunkDocument(BaseModel):
    model_config = _STRICT
    chunk_id: str
    source: str
    score: int | None
    retrieval_score: float | None
    thread_id: str


class _UsageDocument(BaseModel):
    model_config = _STRICT
    llm_calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


class _TurnDocument(BaseModel):
    model_config = _STRICT
    turn_id: str
    parent_turn_id: str
    branch_id: str
    turn_number: int
    query: str
    standalone_query: str
    rewrite_problem: str
    answer: str
    status: TurnStatus
    answered_from: AnsweredFrom
    chunks: list[_ChunkDocument]
    needed_chat_history: list[str] | None
    collection: str
    timestamp: str
    token_count: int
    rag_thread_id: str
    request_id: str
    summary: str
    usage: _UsageDocument


class _OpenTurnDocument(BaseModel):
    model_config = _STRICT
    turn_id: str
    parent_turn_id: str
    branch_id: str
    turn_number: int
    query: str
    request_id: str
    collection: str
    fingerprint: str = ""
    given_history: str = ""


class _BranchDocument(BaseModel):
    model_config = _STRICT
    branch_id: str
    name: str
    parent_branch_id: str
    forked_from: str
    fork_number: int
    head_turn_id: str
    head_number: int


class _ConversationDocument(BaseModel):
    model_config = _STRICT
    format: Literal["judgetree-conversation-tree/3"]
    name: str
    conversation_id: str
    title: str
    branches: list[_BranchDocument]
    turns: list[_TurnDocument]
    trees: dict[str, dict[str, object] | None]
    """Each a document of its own."""
    active_branch: str
    open_turn: _OpenTurnDocument | None


class TurnTreeFields(TypedDict):
    """The fields of a ``TurnTree``."""

    name: str
    conversation_id: str
    title: str
    branches: tuple[Branch, ...]
    turns: tuple[QaPair, ...]
    trees: dict[str, SearchTree | None]
    active_branch: str
    open_turn: OpenTurn | None


def dump_conversation(tree: TurnTree, *, indent: int | None) -> str:
    """The conversation as JSON; Chinese stays readable.

    Raises:
        ValueError: A score or some metadata is a number that is not finite, which JSON cannot say.
    """
    trees = {
        thread_id: tree_document(found.root, found.fingerprint) if found else None
        for thread_id, found in tree.trees.items()
    }
    document = {
        FORMAT_KEY: format_of("conversation-tree"),
        "name": tree.name,
        "conversation_id": tree.conversation_id,
        "title": tree.title,
        "branches": tree.branches,
        "turns": tree.turns,
        "trees": trees,
        "active_branch": tree.active_branch,
        "open_turn": tree.open_turn,
    }
    return write_document(document, indent=indent)


def load_conversation(text: str) -> TurnTreeFields:
    """What ``dump_conversation`` wrote, field by field.

    Raises:
        LoadingError: The text is no JSON, or no conversation tree, or of another format.
    """
    found = check_document(
        parse_json(text, what=_WHAT),
        _ConversationDocument,
        what=_WHAT,
        thing="conversation-tree",
        again="build it again from its conversation",
    )
    return TurnTreeFields(
        name=found.name,
        conversation_id=found.conversation_id,
        title=found.title,
        branches=tuple(cast(Branch, branch.model_dump()) for branch in found.branches),
        turns=tuple(cast(QaPair, turn.model_dump()) for turn in found.turns),
        trees={thread_id: _search_tree(document) for thread_id, document in found.trees.items()},
        active_branch=found.active_branch,
        open_turn=cast(OpenTurn, found.open_turn.model_dump(exclude_unset=True)) if found.open_turn else None,
    )


def _search_tree(document: dict[str, object] | None) -> SearchTree | None:
    if document is None:
        return None
    root, fingerprint = read_tree_document(document)
    return SearchTree(root=root, fingerprint=fingerprint)
