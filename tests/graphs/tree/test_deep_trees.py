"""Trees far deeper than Python's recursion: every export, reader, figure and comparison, found by its name."""

from __future__ import annotations

import copy
import inspect
import itertools
import json
import pickle

import pytest

from judgetree.app.server.serving.options import ServerOptions
from judgetree.app.server.serving.request_keys import QuestionLimits
from judgetree.app.terminal.live_tree import LiveTree
from judgetree.evaluation.metrics.tree import figures_of
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.conversation.tree import ConversationTree
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.rag.tree_diff import TreeDiff
from judgetree.graphs.search.depth import MAX_REC_DEPTH
from judgetree.graphs.tree.documents import plain_query, query_of
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode, walk_queries
from judgetree.modules.errors import LoadingError, SettingsError
from judgetree.modules.memory.turns import MAIN_BRANCH, imported_turn, new_branch
from judgetree.modules.reading.deep_json import dumps, encoded, loads
from tests.random_trees import random_tree

LEVELS = 2_000
WIDTH = 5_000


def chain(levels: int, *, answer: str = "a", width: int = 1) -> SearchTree:
    """A tree in which the first chunk of each query asks the next one."""
    below: tuple[QueryNode, ...] = ()
    for depth in range(levels, -1, -1):
        chunks = [
            ChunkNode(
                chunk_id=f"c{rank}",
                text="x",
                metadata={"rank": rank, "verdict": "judged", "score": 1, "source": "a.md", "next_query": "q"},
                sub_runs=below if rank == 0 else (),
            )
            for rank in range(width)
        ]
        node = QueryNode(
            thread_id=f"t{depth}",
            query=f"q{depth}",
            depth=depth,
            parent_thread_id=f"t{depth - 1}" if depth else None,
            answer=answer,
            status="finished",
            answer_status="answered",
            chunks=tuple(chunks),
        )
        below = (node,)
    return SearchTree(root=below[0])


DEEP = chain(LEVELS)
SLOW = frozenset({"to_svg", "to_graphviz"})
"""Methods that run Graphviz, whose layout of so many boxes takes half a minute, or only wrap the text of another."""
ATTRIBUTES = [name for name, each in inspect.getmembers(SearchTree) if isinstance(each, property)]
EXPORTS = [name for name in dir(SearchTree) if name.startswith("to_") and name not in SLOW]
OTHERS = ["__repr__", "__str__", "_repr_html_", "calls", "read_transcripts"]
DIFFS = [name for name in dir(TreeDiff) if name.startswith("to_")] + ["__repr__", "__str__", "_repr_html_"]
READERS = [name for name in dir(SearchTree) if name.startswith(("from_", "afrom_"))]


def test_every_reader_of_trees_is_known() -> None:
    assert set(READERS) == {"afrom_history", "from_history", "from_json"}, "add it to these tests"


@pytest.mark.parametrize("name", [*EXPORTS, *OTHERS])
def test_a_deep_tree_has_every_export(name: str) -> None:
    assert getattr(DEEP, name)() is not None


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_deep_tree_has_every_figure(name: str) -> None:
    getattr(DEEP, name)


@pytest.mark.parametrize("name", EXPORTS)
def test_a_wide_tree_has_every_export(name: str) -> None:
    assert getattr(chain(0, width=WIDTH), name)() is not None


def test_a_deep_tree_comes_back_from_json_pickle_and_a_copy() -> None:
    for back in (
        SearchTree.from_json(DEEP.to_json()),
        pickle.loads(pickle.dumps(DEEP)),
        copy.deepcopy(DEEP),
    ):
        assert back == DEEP
    other = chain(LEVELS - 1)
    assert other != DEEP
    assert hash(other.root) == hash(DEEP.root)


def test_damage_in_a_deep_tree_is_named() -> None:
    with pytest.raises(LoadingError, match="damaged at depth"):
        SearchTree.from_json(DEEP.to_json().replace(f'"depth": {LEVELS}', '"depth": "low"'))
    with pytest.raises(LoadingError, match="no JSON"):
        SearchTree.from_json(DEEP.to_json()[:-10])
    with pytest.raises(LoadingError, match="not a search tree"):
        SearchTree.from_json("[" * 100_000 + "]" * 100_000)


def test_deep_trees_are_compared() -> None:
    diff = DEEP.diff(chain(LEVELS, answer="b"))
    assert len(diff.differences) == LEVELS + 1
    for name in DIFFS:
        assert getattr(diff, name)() is not None


def test_a_conversation_holds_deep_trees() -> None:
    turn = imported_turn("Who?", "Ada", parent=None, turn_id="1", timestamp="2026-01-01T00:00:00Z")
    turn = {**turn, "rag_thread_id": "t0"}  # type: ignore[misc]
    tree = ConversationTree(
        name="n",
        conversation_id="1.2",
        title="Who?",
        branches=(new_branch(MAIN_BRANCH, "main"),),
        turns=(turn,),
        trees={"t0": DEEP},
    )
    assert ConversationTree.from_json(tree.to_json()) == tree
    for name in ("to_text", "to_dot", "to_networkx", "to_html", "_repr_html_"):
        assert getattr(tree, name)() is not None


def test_deep_trees_have_figures_and_are_drawn_live() -> None:
    assert figures_of(DEEP).depth == LEVELS
    assert LiveTree.of_saved(DEEP).lines(columns=80, rows=20)


@pytest.mark.parametrize("seed", range(5))
def test_shallow_trees_are_as_they_were(seed: int) -> None:
    tree = random_tree(seed)
    plain = json.loads(tree.to_json())["root"]
    assert json.loads(json.dumps(plain_query(tree.root))) == plain
    assert list(plain_query(tree.root)) == list(plain)
    assert query_of(plain) == tree.root == pickle.loads(pickle.dumps(tree.root))
    assert [node.thread_id for node in walk_queries(query_of(plain))] == [n.thread_id for n in walk_queries(tree.root)]


@pytest.mark.parametrize("depth", [MAX_REC_DEPTH + 1, 10**30, -1, True, 1.5, "3"])
def test_a_search_that_is_too_deep_is_refused_before_it_is_asked(depth: object) -> None:
    with pytest.raises(SettingsError, match=r"max_rec_depth: Input should be"):
        Limits(max_rec_depth=depth)  # type: ignore[arg-type]
    if not isinstance(depth, bool | str):
        for model in (ServerOptions, QuestionLimits):
            with pytest.raises(ValueError, match="max_rec_depth"):
                model.model_validate({"max_rec_depth": depth})
    assert Limits(max_rec_depth=MAX_REC_DEPTH).max_rec_depth == MAX_REC_DEPTH


@pytest.mark.parametrize(("indent", "compact"), [*itertools.product([None, 0, 2], [False, True])])
def test_deep_json_is_written_as_json_is(indent: int | None, compact: bool) -> None:
    document = {"a": [1, [], {}, {"b": None, "ä": "\u2028"}, ("x", [True])], "": {"c": 1.5}}

    def encode(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    separators = (",", ":") if compact else None
    wanted = json.dumps(document, ensure_ascii=False, indent=indent, separators=separators)
    assert "".join(encoded(document, encode, indent=indent, compact=compact)) == wanted
    assert dumps(document, indent=indent, compact=compact) == wanted


def test_deep_json_is_read_as_json_is() -> None:
    assert loads('{"a": [1, {"part": 2}]}') == {"a": [1, {"part": 2}]}
    for text in ("[" * 3_000, "]" * 3_000, "[" * 3_000 + "}" * 3_000, "[" * 3_000 + "1,]" + "]" * 2_999):
        with pytest.raises(ValueError, match=r"."):
            loads(text)
