"""The JSON of search trees and conversations: written byte for byte as the files in ``documents/``, read strictly."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from judgetree.graphs.conversation.tree import ConversationTree
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.errors import LoadingError
from judgetree.modules.memory.turns import MAIN_BRANCH, ChunkRef, OpenTurn, new_branch
from tests.call_records import call_record
from tests.modules.turn_factory import make_turn

DOCUMENTS = Path(__file__).parent / "documents"


CALL = {"chunk_id": "a", "seconds": 0.00001, "cached": True}
TREE = SearchTree(
    root=QueryNode(
        thread_id="root",
        query="谁写了《红楼梦》? \ud83d",
        answer='Cao "Xueqin" \\ 😀\n\x00',
        status="finished",
        answer_status="answered",
        evidence="[1] …",
        usage=(
            call_record("id of judge", **CALL),
            call_record(
                "id of generate", **{**CALL, "node": "generate", "seconds": 1e22, "estimated": True, "error": "503"}
            ),
        ),
        started_at="2026-01-01T00:00:00+00:00",
        ended_at="2026-01-01T00:00:01+00:00",
        chunks=(
            ChunkNode(
                chunk_id="a",
                text="正文",
                metadata={"rank": 0, "retrieval_score": 1.0, "score": 1, "flag": True, "none": None, "big": 2**70},
                sub_runs=(QueryNode(thread_id="root-a", query="", parent_thread_id="root", depth=1, chunks=()),),
            ),
            ChunkNode(chunk_id="b", text="", metadata={}),
        ),
    ),
    fingerprint={"judge": "oracle", "数": "1"},
)
_REF = ChunkRef(chunk_id="a", source="a.md", score=1, retrieval_score=0.30000000000000004, thread_id="root")
_FIRST = make_turn(1) | {"chunks": [_REF], "needed_chat_history": None, "rag_thread_id": "root"}
_SECOND = make_turn(2) | {"needed_chat_history": ["t1"], "rag_thread_id": "gone"}
_OPEN = OpenTurn(
    turn_id="t3",
    parent_turn_id="t2",
    branch_id=MAIN_BRANCH,
    turn_number=3,
    query="然后?",
    request_id="",
    collection="c",
    fingerprint="f",
)
CONVERSATION = ConversationTree(
    name="monday 周一",
    conversation_id="1.2",
    title="谁?",
    branches=(new_branch(MAIN_BRANCH, "main"),),
    turns=(_FIRST, _SECOND),  # type: ignore[arg-type]
    trees={"root": TREE, "gone": None},
    open_turn=_OPEN,
)


def golden(name: str) -> str:
    return (DOCUMENTS / f"{name}.json").read_text(encoding="utf-8").removesuffix("\n")


@pytest.mark.parametrize(("name", "tree"), [("search_tree", TREE), ("conversation_tree", CONVERSATION)])
def test_document_is_written_as_ever_and_read_back(name: str, tree: SearchTree | ConversationTree) -> None:
    text = golden(name)

    assert tree.to_json(indent=2) == text
    assert tree.to_json() == json.dumps(json.loads(text), ensure_ascii=False).replace("\ud83d", "\\ud83d")
    assert type(tree).from_json(text) == tree


def test_tree_read_and_written_again_is_the_same_text() -> None:
    assert SearchTree.from_json(golden("search_tree")).to_json(indent=2) == golden("search_tree")


def test_tree_of_200_nested_questions_is_written_and_read() -> None:
    node = QueryNode(thread_id="200", query="q")
    for depth in reversed(range(200)):
        chunk = ChunkNode(chunk_id="c", text="t", metadata={}, sub_runs=(node,))
        node = QueryNode(thread_id=str(depth), query="q", depth=depth, chunks=(chunk,))
    text = SearchTree(root=node).to_json()

    assert SearchTree.from_json(text).to_json() == text


def test_json_that_nests_too_deep_is_refused() -> None:
    with pytest.raises(LoadingError, match="not a search tree: no JSON"):
        SearchTree.from_json("[" * 100_000)


GONE = object()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("fingerprint", GONE, "Missing field"),
        ("root.chunks.0.sub_runs.0.answer", GONE, "Missing field"),
        ("root.usage.1.cut_off", GONE, "Missing field"),
        ("root.usage.0.extra", 1, r"Unknown field, found 1 \(1 faults"),
        ("root.chunks.1.extra", 1, "Unknown field"),
        ("root.depth", "1", "Input should be a valid integer, found '1'"),
        ("root.depth", True, "Input should be a valid integer, found True"),
        ("root.depth", 1.0, "Input should be a valid integer, found 1.0"),
        ("root.usage.0.cached", 1, "Input should be a valid boolean, found 1"),
        ("root.chunks.0.sub_runs.0.status", "lost", "Input should be 'finished', 'failed' or 'open', found 'lost'"),
        ("root.chunks", {}, r"Input should be a list, found \{\}"),
        ("root", [], r"be an object, found \[\]"),
        ("root.chunks.0.metadata.k", [1], r"found \[1\]"),
    ],
)
def test_damaged_search_tree_is_refused_with_place_and_value(place: str, value: object, message: str) -> None:
    check_refusal(SearchTree, "search_tree", place, value, f"This search tree is damaged at {place}.*: .*{message}")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("open_turn", GONE, "Missing field"),
        ("turns.1.usage.seconds", GONE, "Missing field"),
        ("turns.0.chunks.0.score", "1", "found '1'"),
        ("turns.0.answered_from", "joked", "'small_talk', found 'joked'"),
        ("branches.0.extra", 1, "Unknown field"),
        ("open_turn.extra", 1, "Unknown field"),
        ("extra", 1, "Unknown field, found 1"),
    ],
)
def test_damaged_conversation_tree_is_refused_with_place_and_value(place: str, value: object, message: str) -> None:
    words = f"This conversation tree is damaged at {place}: .*{message}"
    check_refusal(ConversationTree, "conversation_tree", place, value, words)


def test_damaged_search_tree_of_a_conversation_is_refused_as_one() -> None:
    check_refusal(
        ConversationTree, "conversation_tree", "trees.root", [], "not a search tree: the JSON holds no object"
    )
    words = "This search tree is damaged at root.query: Missing field"
    check_refusal(ConversationTree, "conversation_tree", "trees.root.root.query", GONE, words)


def check_refusal(
    kind: type[SearchTree | ConversationTree], name: str, place: str, value: object, message: str
) -> None:
    document = json.loads(golden(name))
    *above, last = (int(step) if step.isdigit() else step for step in place.split("."))
    spot = document
    for step in above:
        spot = spot[step]
    if value is GONE:
        del spot[last]
    else:
        spot[last] = value

    with pytest.raises(LoadingError, match=message):
        kind.from_json(json.dumps(document))


def test_number_that_json_cannot_say_is_not_written() -> None:
    root = QueryNode(thread_id="t", query="q", chunks=(ChunkNode(chunk_id="c", text="", metadata={"x": math.inf}),))

    with pytest.raises(ValueError, match="not JSON compliant"):
        SearchTree(root=root).to_json()
