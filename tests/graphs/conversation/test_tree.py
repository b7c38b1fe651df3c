"""The tree of a conversation that was really led: what it holds, and that it is kept without loss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.graphs.conversation.conversation import FIRST, Conversation
from judgetree.graphs.conversation.tree import ConversationTree
from judgetree.graphs.conversations import Conversations
from judgetree.modules.background_loop import background_loop
from judgetree.modules.errors import LoadingError
from judgetree.modules.memory.turns import MAIN_BRANCH, QaPair, new_branch, rag_thread_of
from tests.graphs.conversation.talk import CLASS, DOWN, OIL, SCREW, TalkingLLM, open_conversations, saved
from tests.modules.turn_factory import make_turn

OIL_FOLLOW_UP, COLOUR_FOLLOW_UP = "And its oil?", "Which colour has it?"


@dataclass(frozen=True)
class Talk:
    """Main: a search, a follow-up, an answer from the first one's evidence. A second branch whose turn is open."""

    conversations: Conversations
    conversation: Conversation
    llm: TalkingLLM
    tree: ConversationTree
    turns: tuple[QaPair, ...]


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    llm = TalkingLLM()
    with open_conversations(tmp_path_factory.mktemp("talk"), llm) as conversations:
        conversation = conversations.conversation("monday")
        turns = tuple(conversation.ask(query).turn for query in (CLASS, OIL_FOLLOW_UP, COLOUR_FOLLOW_UP))
        llm.broken["read"] = DOWN
        conversation.ask(SCREW, parent_turn_id=FIRST)
        llm.asked()
        yield Talk(conversations, conversation, llm, conversation.tree(), turns)  # type: ignore[arg-type]


def test_tree_holds_the_conversation_and_the_search_tree_of_each_turn(talk: Talk) -> None:
    tree = talk.tree
    assert (tree.name, tree.title, tree.active_branch) == ("monday", CLASS, MAIN_BRANCH)
    assert tree.turns == talk.turns
    assert list(tree.branches) == talk.conversation.branches()
    searched = [tree.tree_of(turn) for turn in tree.turns]
    assert [found and found.root.query for found in searched] == [CLASS, OIL, None]
    assert searched[0] is not None
    assert [chunk.chunk_id for chunk in searched[0].chunk_nodes()] == ["class"]
    assert tree.usage["llm_calls"] == sum(turn["usage"]["llm_calls"] for turn in talk.turns) == 7


def test_building_a_tree_calls_no_model(talk: Talk) -> None:
    assert talk.conversation.tree() == talk.tree
    assert talk.llm.asked() == []


def test_open_turn_stands_on_its_branch_with_its_search_as_far_as_it_came(talk: Talk) -> None:
    main, other = talk.tree.lanes()
    assert ([turn["query"] for turn in main.turns], main.open_turn) == ([CLASS, OIL_FOLLOW_UP, COLOUR_FOLLOW_UP], None)
    assert (other.turns, other.open_turn) == ((), talk.conversation.open_turn)
    assert (main.is_active, other.is_active) == (True, False)
    assert talk.tree.open_tree is not None
    assert (talk.tree.open_tree.root.query, talk.tree.open_tree.root.status) == (SCREW, "failed")


def test_evidence_that_is_used_again_leads_back_to_the_turn_that_found_it(talk: Talk) -> None:
    first, _, colour = talk.turns
    (reuse,) = talk.tree.reuses()
    assert (reuse.found_in, reuse.used_in) == (first, colour)
    assert [ref["chunk_id"] for ref in reuse.chunks] == ["class"]


def test_tree_that_is_gone_is_none_and_drawn_as_such(tmp_path: Path) -> None:
    with open_conversations(tmp_path, TalkingLLM()) as conversations:
        conversation = conversations.conversation("s")
        turn = saved(conversation.ask(CLASS))

        async def lose() -> None:
            opened = await conversations.services.open()
            await opened.store.delete_threads([turn["rag_thread_id"]])

        background_loop().run(lose())
        tree = conversation.tree()
    assert tree.trees == {turn["rag_thread_id"]: None}
    assert "its search tree is gone" in str(tree)
    assert "search tree: gone" in tree.to_dot()
    assert ConversationTree.from_json(tree.to_json()) == tree


def test_conversation_without_a_turn_has_a_tree(talk: Talk) -> None:
    tree = talk.conversations.conversation("nobody").tree()
    assert (tree.turns, tree.open_turn, [branch["name"] for branch in tree.branches]) == ((), None, ["main"])
    assert str(tree).splitlines() == ["nobody", "main (active)", "0 turns · 1 branch · no model calls"]
    assert "<svg" in tree.to_html(picture=True)


def test_graph_joins_turns_their_evidence_and_their_search_trees(talk: Talk) -> None:
    first, oil, colour = (turn["turn_id"] for turn in talk.turns)
    graph = talk.tree.to_networkx()
    kinds = {(start, end, kind) for start, end, kind in graph.edges(keys=True) if kind != "retrieved"}
    waiting = talk.conversation.open_turn
    assert waiting is not None
    assert kinds == {
        (first, oil, "followed_by"),
        (oil, colour, "followed_by"),
        (first, colour, "reused_by"),
        (first, talk.turns[0]["rag_thread_id"], "searched"),
        (oil, talk.turns[1]["rag_thread_id"], "searched"),
        (waiting["turn_id"], rag_thread_of(talk.tree.conversation_id, waiting["turn_id"]), "searched"),
    }
    assert graph.nodes[colour]["answered_from"] == "history"
    assert len(nx.parse_graphml("\n".join(nx.generate_graphml(graph)), force_multigraph=True)) == len(graph)


@given(st.text(st.characters()), st.none() | st.floats(allow_nan=False, allow_infinity=False))
def test_json_keeps_any_text_and_score(text: str, score: float | None) -> None:
    turn = make_turn(1)
    ref = {"chunk_id": text, "source": text, "score": None, "retrieval_score": score, "thread_id": ""}
    turn |= {"query": text, "answer": text, "chunks": [ref]}  # type: ignore[typeddict-item,list-item]
    tree = ConversationTree(
        name=text,
        conversation_id=text,
        title=text,
        branches=(new_branch(MAIN_BRANCH, text),),
        turns=(turn,),
        trees={text: None},
    )
    assert ConversationTree.from_json(tree.to_json()) == tree


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "judgetree-search-tree/7"}, "reads 'judgetree-conversation-tree/3' only. .* build it again"),
        ({"trees": {"t": {"format": "x"}}}, "This search tree has the format 'x'"),
    ],
)
def test_what_is_no_conversation_tree_is_refused(talk: Talk, change: dict[str, object], message: str) -> None:
    document = json.loads(talk.tree.to_json()) | change
    with pytest.raises(LoadingError, match=message):
        ConversationTree.from_json(json.dumps(document))


def test_repr_is_short(talk: Talk) -> None:
    assert repr(talk.tree) == f"ConversationTree(name='monday', title={CLASS!r}, turns=3)"
