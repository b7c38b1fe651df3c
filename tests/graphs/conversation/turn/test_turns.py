"""One conversation: what a turn asks of the model, finds, reuses and saves."""

from __future__ import annotations

from judgetree.graphs.conversations import Conversations
from tests.graphs.conversation.talk import CLASS, OIL, SCREW, TalkingLLM, after_first_turn, saved


def test_first_turn_is_searched_for_as_it_is(talks: Conversations, llm: TalkingLLM) -> None:
    result = talks.conversation("s").ask(CLASS)
    assert (result.answer, result.status, result.error) == ("Delta", "answered", "")
    assert llm.asked() == ["read"]
    assert result.turn is not None
    assert result.turn["answered_from"] == "search"
    assert [ref["chunk_id"] for ref in result.turn["chunks"]] == ["class"]


def test_follow_up_is_rewritten_and_finds_its_own_evidence(talks: Conversations, llm: TalkingLLM) -> None:
    talk = after_first_turn(talks, llm)
    result = talk.ask("And its oil?")
    assert result.answer == "Vellin"
    assert llm.asked() == ["select", "assess", "read"]
    assert result.turn is not None
    assert (result.turn["standalone_query"], result.turn["turn_number"]) == (OIL, 2)
    assert result.turn["usage"]["llm_calls"] == 3
    assert [turn["query"] for turn in talk.history()] == [CLASS, "And its oil?"]


def test_what_history_answers_is_not_searched_for(talks: Conversations, llm: TalkingLLM) -> None:
    talk = after_first_turn(talks, llm)
    turn = saved(talk.ask("Which colour has it?"))
    assert (turn["answer"], turn["answered_from"], turn["rag_thread_id"]) == ("green", "history", "")
    assert [ref["chunk_id"] for ref in turn["chunks"]] == ["class"]
    assert llm.asked() == ["select", "assess", "judge"]


def test_topic_switch_takes_no_old_chunk(talks: Conversations, llm: TalkingLLM) -> None:
    talk = after_first_turn(talks, llm)
    turn = saved(talk.ask(SCREW))
    assert (turn["answer"], [ref["chunk_id"] for ref in turn["chunks"]]) == ("M8", ["screw"])
    assert llm.asked() == ["select", "read"]
