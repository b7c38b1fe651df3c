"""How a conversation is led: the options, what a model that fails takes away, and what a prompt shows of the past."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage

from judgetree.graphs.conversation.record import ConversationRecord
from judgetree.graphs.conversation.turn.context import ConversationOptions, TurnLimits
from judgetree.graphs.conversations import Conversations
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.errors import SettingsError
from tests.graphs.conversation.talk import (
    CLASS,
    DOWN,
    KINDS,
    OIL,
    SCREW,
    FollowUp,
    TalkingLLM,
    after_first_turn,
    open_conversations,
    saved,
    settings_in,
)
from tests.graphs.fakes import TableRetriever, chunk

Open = Callable[..., Conversations]


class Web:
    """Finds one page for anything."""

    async def search(self, query: str, *, limit: int) -> list[Document]:
        page = {"chunk_id": "page", "source": "http://example.org/page"}
        return [Document(page_content=f"All of {query}", metadata=page)]


def test_selection_that_cannot_be_had_is_condensed_and_takes_no_old_chunk(opened: Open, llm: TalkingLLM) -> None:
    talk = after_first_turn(opened())
    llm.broken["select"] = "no json at all"
    llm.asked()
    turn = saved(talk.ask("And its oil?"))
    assert (turn["standalone_query"], turn["answer"]) == (OIL, "Vellin")
    assert [ref["chunk_id"] for ref in turn["chunks"]] == ["oil"]
    assert llm.asked() == ["select", "select", "condense", "read"], "one repair, then without it"


@pytest.mark.parametrize("broken", [DOWN, "not json", '{"question": ""}'])
def test_assessment_that_cannot_be_had_is_condensed(opened: Open, llm: TalkingLLM, broken: Exception | str) -> None:
    talk = after_first_turn(opened())
    llm.broken["assess"] = broken
    assert saved(talk.ask("And its oil?"))["answer"] == "Vellin"
    assert "condense" in llm.asked()


def test_where_nothing_helps_the_question_is_searched_for_as_it_is(opened: Open, llm: TalkingLLM) -> None:
    talk = after_first_turn(opened())
    llm.broken |= {"select": DOWN, "condense": DOWN}
    turn = saved(talk.ask(SCREW))
    assert (turn["standalone_query"], turn["answer"]) == (SCREW, "M8")


def test_kept_chunk_joins_the_evidence_once(tmp_path: Path) -> None:
    follow_ups = {"And both?": FollowUp((1,), OIL, useful=(1,))}
    oil = [chunk("oil", "Class Delta needs Vellin.")]
    retriever = TableRetriever({CLASS: [chunk("class", "KS-1 is class Delta."), *oil], OIL: oil})
    with open_conversations(tmp_path, TalkingLLM(follow_ups), retriever=retriever) as talks:
        talk = after_first_turn(talks)
        turn = saved(talk.ask("And both?"))
    assert turn["answer"] == "Vellin"
    assert sorted(ref["chunk_id"] for ref in turn["chunks"]) == ["class", "oil"]


def test_reader_may_be_asked_the_question_as_it_was_put(opened: Open, llm: TalkingLLM) -> None:
    talk = after_first_turn(opened(options=ConversationOptions(rephrase_question=False)))
    turn = saved(talk.ask("And its oil?"))
    assert (turn["standalone_query"], turn["status"]) == (OIL, "refused"), "the script knows the stand-alone one only"
    assert llm.calls[-1][-1][1].endswith("Question: And its oil?")


def test_sources_and_question_come_back_only_if_asked_for(opened: Open) -> None:
    plain = opened().conversation("plain").ask(CLASS)
    assert (plain.source_documents, plain.generated_question) == (None, None)
    assert not {"source_documents", "generated_question"} & plain.to_document().keys()
    options = ConversationOptions(return_source_documents=True, return_generated_question=True)
    full = opened(options=options).conversation("full").ask(CLASS)
    assert full.source_documents is not None
    assert [chunk.page_content for chunk in full.source_documents] == ["KS-1 is class Delta, and is green."]
    assert full.generated_question == CLASS
    assert full.to_document()["generated_question"] == CLASS


def test_answer_may_have_the_key_that_a_chain_expects(opened: Open) -> None:
    document = opened(options=ConversationOptions(output_key="result")).conversation("s").ask(CLASS).to_document()
    assert (document["result"], "answer" in document) == ("Delta", False)
    for key in ("", "turn"):
        with pytest.raises(SettingsError, match="output_key"):
            opened(options=ConversationOptions(output_key=key))


def test_model_of_its_own_understands_follow_ups(opened: Open, llm: TalkingLLM, tmp_path: Path) -> None:
    small = TalkingLLM()
    after_first_turn(opened(), llm)
    result = opened(options=ConversationOptions(condense_llm=small)).conversation("s").ask("And its oil?")
    assert (result.answer, result.standalone_query, result.usage["llm_calls"]) == ("Vellin", OIL, 3)
    assert (small.asked(), llm.asked()) == (["select", "assess"], ["read"])
    never = ConversationOptions(condense_llm=small, answer_from_history="never")
    opened(options=never).conversation("s").ask("And its oil?")
    assert (small.asked(), llm.asked()) == (["condense"], ["read"])
    mistaken = opened(settings=settings_in(tmp_path, condense_llm="nonsense")).conversation("t")
    with pytest.raises(SettingsError, match="Unknown model 'nonsense'"):
        mistaken.ask(CLASS)
    assert mistaken.open_turn is None


def test_own_rendering_of_the_history_stands_in_the_prompts(opened: Open, llm: TalkingLLM) -> None:
    options = ConversationOptions(get_chat_history=lambda pairs: f"<<{pairs}>>")
    talk = after_first_turn(opened(options=options))
    talk.ask("And its oil?")
    (assessment,) = [messages for messages in llm.calls if KINDS[messages[0][1]] == "assess"]
    assert f"<<[('{CLASS}', 'Delta')]>>" in assessment[1][1]


def test_fixed_response_where_a_search_finds_nothing(opened: Open) -> None:
    result = opened(options=ConversationOptions(response_if_no_docs_found="Nothing there.")).conversation("s").ask("?")
    assert (result.answer, result.status) == ("Nothing there.", "refused")


def test_general_knowledge_is_marked_and_only_used_on_request(opened: Open, llm: TalkingLLM) -> None:
    assert saved(opened().conversation("a").ask("Who?"))["status"] == "refused"
    turn = saved(opened(options=ConversationOptions(answer_without_evidence=True)).conversation("b").ask("Who?"))
    assert (turn["answer"], turn["answered_from"]) == ("from memory", "knowledge")
    assert llm.asked() == ["read", "read", "knowledge"]


def test_small_talk_is_answered_at_once_and_a_question_is_not_taken_for_it(opened: Open, llm: TalkingLLM) -> None:
    talk = opened(options=ConversationOptions(direct_answer=True)).conversation("s")
    turn = saved(talk.ask("Hello there"))
    assert (turn["answer"], turn["answered_from"], turn["rag_thread_id"]) == ("Hello!", "small_talk", "")
    assert llm.asked() == ["small_talk"]
    assert saved(talk.ask(CLASS))["answer"] == "Delta"


def test_web_is_searched_where_the_model_says_so(opened: Open, llm: TalkingLLM) -> None:
    talk = opened(options=ConversationOptions(web_or_rag=True), web=Web()).conversation("s")
    llm.broken["read"] = "sunny"
    turn = saved(talk.ask("What is the weather?"))
    assert (turn["answer"], turn["answered_from"]) == ("sunny", "web")
    assert [ref["source"] for ref in turn["chunks"]] == ["http://example.org/page"]
    del llm.broken["read"]
    assert saved(talk.ask(CLASS))["answered_from"] == "search"


def test_web_without_a_service_is_refused_at_once(opened: Open) -> None:
    with pytest.raises(SettingsError, match="JUDGETREE_SEARXNG_URL"):
        opened(options=ConversationOptions(web_or_rag=True))


@pytest.mark.parametrize(
    "given", [[(CLASS, "Delta")], [HumanMessage(content=CLASS), AIMessage(content="Delta")]], ids=["tuples", "messages"]
)
def test_history_of_the_caller_replaces_our_own(opened: Open, llm: TalkingLLM, given: list[object]) -> None:
    talk = opened().conversation("s")
    turn = saved(talk.ask("And its oil?", chat_history=given))  # type: ignore[arg-type]
    assert turn["answer"] == "Vellin"
    assert llm.asked() == ["select", "assess", "read"]
    assert len(talk.history()) == 1


def test_open_turn_with_another_history_of_the_caller_is_another_turn(opened: Open, llm: TalkingLLM) -> None:
    talk = opened().conversation("s")
    llm.broken["read"] = DOWN
    assert talk.ask("And its oil?", chat_history=[(CLASS, "Delta")]).status == "failed"
    del llm.broken["read"]
    llm.asked()
    result = talk.ask("And its oil?", chat_history=[(SCREW, "M8")])
    assert not result.resumed
    assert llm.asked()[0] == "select"


def test_evidence_over_half_of_a_prompt_is_digested_for_the_reader_too(llm: TalkingLLM, tmp_path: Path) -> None:
    table = {CLASS: [chunk("class", f"KS-1 is class Delta, and is green. {'It is heavy. ' * 200}")]}
    limits = TurnLimits(max_tokens=800)
    with open_conversations(tmp_path, llm, limits=limits, retriever=TableRetriever(table)) as talks:
        talk = talks.conversation("s")
        llm.broken["read"] = "Delta"
        talk.ask(CLASS)
        assert llm.asked() == ["digest", "read"], "the evidence of the search does not fit either"
        assert "KS-1 is green [1]" in llm.calls[-1][1][1]
        turn = saved(talk.ask("Which colour has it?"))
    assert (turn["answer"], turn["answered_from"]) == ("green", "history")
    assert llm.asked() == ["select", "digest", "assess", "judge"]
    assert max(map(message_tokens, llm.calls)) <= 800


def test_state_holds_the_newest_turns_and_the_memory_all(opened: Open) -> None:
    talks = opened(limits=TurnLimits(max_recent_turns=2))
    talk = talks.conversation("s")
    asked = [CLASS, OIL, SCREW] * 2
    for query in asked:
        talk.ask(query)
    kept = background_loop().run(ConversationRecord(talks.services, "s").load())
    assert kept is not None
    assert [turn["turn_number"] for turn in kept["chat_history"]] == [4, 5, 6]
    assert [turn["query"] for turn in talk.history()] == asked


def test_old_turns_that_are_alike_are_shown_besides_the_newest(opened: Open, llm: TalkingLLM) -> None:
    talk = opened(limits=TurnLimits(max_recent_turns=1, max_relevant_turns=1)).conversation("s")
    for query in (CLASS, SCREW, OIL):
        talk.ask(query)
    talk.ask("Which screws did KS-9 have?")
    shown = [messages[1][1] for messages in llm.calls if '{"turns"' in messages[0][1]][-1]
    assert "Turn 2\n" in shown
    assert "Turn 3\n" in shown
    assert "Turn 1\n" not in shown


def test_summary_memory_folds_old_turns_once_and_shows_the_summary(opened: Open, llm: TalkingLLM) -> None:
    options = ConversationOptions(summary_memory=True)
    talk = opened(options=options, limits=TurnLimits(max_recent_turns=2, max_relevant_turns=0)).conversation("s")
    kinds = []
    for query in (CLASS, OIL, SCREW, CLASS, OIL, SCREW, CLASS):
        talk.ask(query)
        kinds.append(llm.asked().count("summary"))
    assert kinds == [0, 0, 0, 0, 1, 0, 1]
    shown = [messages[1][1] for messages in llm.calls if '{"turns"' in messages[0][1]]
    assert "Summary of the turns before:\nsummary of" in shown[-1]
    folds = [messages[1][1] for messages in llm.calls if KINDS[messages[0][1]] == "summary"]
    assert "Summary of the turns before:" not in folds[0]
    assert "Summary of the turns before:\nsummary of" in folds[1], "the second summary takes in the first"
    assert [turn["turn_number"] for turn in talk.history() if turn["summary"]] == [2, 4]


def test_summary_that_fails_is_left_to_a_later_turn(opened: Open, llm: TalkingLLM) -> None:
    options = ConversationOptions(summary_memory=True)
    talk = opened(options=options, limits=TurnLimits(max_recent_turns=1)).conversation("s")
    llm.broken["summary"] = DOWN
    for query in (CLASS, OIL, SCREW):
        assert talk.ask(query).status == "answered"
    del llm.broken["summary"]
    talk.ask(CLASS)
    assert "summary" in llm.asked()
    assert [turn["turn_number"] for turn in talk.history() if turn["summary"]]
