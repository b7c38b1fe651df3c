"""Branches: which turns are history, and what switching, renaming, deleting, undoing and regenerating leave."""

from __future__ import annotations

import pytest

from judgetree.graphs.conversation.conversation import FIRST, Conversation
from judgetree.graphs.conversations import Conversations
from judgetree.modules.errors import SettingsError
from judgetree.modules.memory.turns import QaPair
from tests.graphs.conversation.talk import CLASS, DOWN, OIL, SCREW, TalkingLLM, saved


@pytest.fixture
def talk(talks: Conversations) -> Conversation:
    return talks.conversation("s")


def ask(talk: Conversation, query: str, *, after: QaPair | None = None) -> QaPair:
    result = talk.ask(query, parent_turn_id=after["turn_id"] if after else None)
    assert result.turn is not None, result.error
    return result.turn


def queries(talk: Conversation) -> list[str]:
    return [turn["query"] for turn in talk.history()]


def test_history_is_the_path_and_not_the_order_in_time(talk: Conversation, llm: TalkingLLM) -> None:
    first = ask(talk, CLASS)
    ask(talk, SCREW)
    third = ask(talk, "And its oil?", after=first)
    assert (third["turn_number"], third["parent_turn_id"], third["answer"]) == (2, first["turn_id"], "Vellin")
    assert queries(talk) == [CLASS, "And its oil?"]
    selection = next(messages[1][1] for messages in reversed(llm.calls) if '{"turns"' in messages[0][1])
    assert SCREW not in selection
    assert [turn["query"] for turn in talk.turns()] == [CLASS, SCREW, "And its oil?"]


def test_turn_after_the_newest_of_another_branch_goes_on_with_that_one(talk: Conversation) -> None:
    first = ask(talk, CLASS)
    second = ask(talk, SCREW)
    ask(talk, OIL, after=first)
    assert ask(talk, OIL, after=second)["branch_id"] == second["branch_id"]
    assert talk.active_branch == "main"
    assert len(talk.branches()) == 2


def test_beginning_anew_has_no_history(talk: Conversation, llm: TalkingLLM) -> None:
    ask(talk, CLASS)
    llm.asked()
    assert talk.ask(SCREW, parent_turn_id=FIRST).answer == "M8"
    assert llm.asked() == ["read"]
    assert queries(talk) == [SCREW]


def test_switching_and_renaming(talk: Conversation) -> None:
    first = ask(talk, CLASS)
    ask(talk, SCREW)
    ask(talk, OIL, after=first)
    assert talk.active_branch == "branch-2"
    talk.switch("main")
    assert queries(talk) == [CLASS, SCREW]
    talk.rename_branch("branch-2", "oils")
    talk.switch("oils")
    assert queries(talk) == [CLASS, OIL]


@pytest.mark.parametrize(("old", "new"), [("main", "branch-2"), ("main", "  "), ("nobody", "x")])
def test_impossible_name_is_refused(talk: Conversation, old: str, new: str) -> None:
    ask(talk, OIL, after=ask(talk, CLASS))
    ask(talk, SCREW, after=talk.history()[0])
    with pytest.raises(SettingsError):
        talk.rename_branch(old, new)


def test_deleting_a_branch_takes_its_turns_and_their_search_trees(talk: Conversation) -> None:
    first = ask(talk, CLASS)
    ask(talk, SCREW)
    gone = ask(talk, OIL, after=first)
    with pytest.raises(SettingsError, match="it is the active one"):
        talk.delete_branch("branch-2")
    talk.switch("main")
    assert talk.delete_branch("branch-2") == 1
    assert [turn["query"] for turn in talk.turns()] == [CLASS, SCREW]
    assert talk.search_tree(gone) is None
    assert talk.search_tree(first) is not None


def test_branch_that_others_fork_from_is_kept(talk: Conversation) -> None:
    first = ask(talk, CLASS)
    ask(talk, SCREW)
    second = ask(talk, OIL, after=first)
    ask(talk, OIL)
    ask(talk, SCREW, after=second)
    talk.switch("main")
    with pytest.raises(SettingsError, match="branch-3 fork from it"):
        talk.delete_branch("branch-2")
    with pytest.raises(SettingsError, match="it is the first one"):
        talk.delete_branch("main")


def test_undo_takes_back_the_newest_turn(talk: Conversation, llm: TalkingLLM) -> None:
    ask(talk, CLASS)
    undone = ask(talk, SCREW)
    with pytest.raises(SettingsError, match="not the newest of the active branch any more"):
        talk.undo(talk.history()[0]["turn_id"])
    assert talk.undo(undone["turn_id"]) == undone
    assert queries(talk) == [CLASS]
    assert talk.search_tree(undone) is None
    assert ask(talk, "And its oil?")["turn_number"] == 2
    talk.undo()
    talk.undo()
    assert talk.history() == []
    with pytest.raises(SettingsError, match="nothing to undo"):
        talk.undo()


def test_undo_gives_up_an_open_turn_that_follows_the_undone_one(talk: Conversation, llm: TalkingLLM) -> None:
    ask(talk, CLASS)
    ask(talk, SCREW)
    llm.broken["read"] = DOWN
    assert talk.ask(OIL, request_id="r").status == "failed"
    talk.undo()
    assert talk.open_turn is None
    del llm.broken["read"]
    again = talk.ask(OIL, request_id="r")
    assert again.turn is not None
    assert (again.turn["turn_number"], queries(talk)) == (2, [CLASS, OIL])
    talk.undo()
    assert queries(talk) == [CLASS]


def test_turn_that_a_branch_forks_from_is_not_undone(talk: Conversation) -> None:
    first = ask(talk, CLASS)
    second = ask(talk, SCREW)
    ask(talk, OIL, after=first)
    ask(talk, OIL, after=second)
    talk.undo()
    talk.undo()
    with pytest.raises(SettingsError, match="branch-2 fork from it"):
        talk.undo()


def test_regenerating_puts_a_new_turn_beside_the_old_one(talk: Conversation, llm: TalkingLLM) -> None:
    ask(talk, CLASS)
    old = ask(talk, SCREW)
    llm.asked()
    new = saved(talk.regenerate())
    assert (new["parent_turn_id"], new["turn_number"]) == (old["parent_turn_id"], old["turn_number"])
    assert new["turn_id"] != old["turn_id"]
    assert new["rag_thread_id"] != old["rag_thread_id"]
    assert llm.asked() == ["select", "read"], "it is paid for"
    assert talk.active_branch == "branch-2"


def test_unknown_parent_is_refused_and_nothing_is_begun(talk: Conversation) -> None:
    ask(talk, CLASS)
    with pytest.raises(SettingsError, match="has no turn 'nobody'"):
        talk.ask(OIL, parent_turn_id="nobody")
    assert talk.open_turn is None
