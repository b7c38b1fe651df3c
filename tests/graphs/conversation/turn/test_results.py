"""What the result of a turn says of it: its search tree, usage and basis, of failed turns too."""

from __future__ import annotations

import json

from judgetree.graphs.conversations import Conversations
from tests.graphs.conversation.talk import CLASS, DOWN, OIL, TalkingLLM, after_first_turn, saved


def test_result_has_tree_usage_and_basis_like_that_of_a_question(talks: Conversations) -> None:
    talk = after_first_turn(talks)
    result = talk.ask("And its oil?")
    assert result.tree == talk.search_tree(saved(result))
    assert (result.answered_from, result.standalone_query) == ("search", OIL)
    assert result.usage == saved(result)["usage"]
    assert result.usage["llm_calls"] == 3
    assert "Vellin" in result._repr_html_()
    document = json.loads(json.dumps(result.to_document()))
    assert document["tree"]["root"]["query"] == OIL
    assert (document["usage"], document["answered_from"]) == (result.usage, "search")


def test_result_outlives_the_conversations_that_made_it(talks: Conversations) -> None:
    result = talks.conversation("s").ask(CLASS)
    talks.delete("s")
    talks.close()
    assert result.tree is not None
    assert result.tree.root.query == CLASS


def test_turn_without_a_search_has_no_tree_and_still_shows_itself(talks: Conversations) -> None:
    result = after_first_turn(talks).ask("Which colour has it?")
    assert (result.tree, result.answered_from, result.usage["llm_calls"]) == (None, "history", 3)
    assert "green" in result._repr_html_()
    assert result.to_document()["tree"] is None


def test_failed_turn_has_the_tree_and_the_usage_so_far(talks: Conversations, llm: TalkingLLM) -> None:
    talk = after_first_turn(talks)
    llm.broken["read"] = DOWN
    failed = talk.ask("And its oil?")
    assert (failed.turn, failed.answered_from, failed.standalone_query) == (None, "", OIL)
    assert failed.tree is not None
    assert [chunk.chunk_id for chunk in failed.tree.chunk_nodes()] == ["oil"]
    assert failed.usage["llm_calls"] == 2, "two calls before the search; the reader's gave nothing"
    assert "the model is down" in failed._repr_html_()
    del llm.broken["read"]
    again = talk.ask("And its oil?")
    assert (again.resumed, again.usage["llm_calls"]) == (True, 3)


def test_turn_that_was_saved_before_is_returned_with_its_tree(talks: Conversations) -> None:
    talk = talks.conversation("s")
    first, again = (talk.ask(CLASS, request_id="1") for _ in range(2))
    assert again.resumed
    assert (again.tree, again.usage) == (first.tree, first.usage)
