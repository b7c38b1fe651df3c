"""Conversations of a session: its store, models and collection are theirs, and closing it closes them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from judgetree.graphs.config.limits import Limits
from judgetree.graphs.conversation.turn.context import ConversationOptions
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.recording import Recording
from judgetree.modules.calls.completion import Completion
from judgetree.modules.errors import SessionError, SettingsError
from judgetree.modules.judge.oracle import GoldFact, OracleJudge
from tests.graphs.conversation.talk import CLASS, OIL, TABLE, FollowUp, TalkingLLM, open_conversations, settings_in
from tests.graphs.fakes import TableRetriever, chunk
from tests.graphs.two_steps import FACTS, GOLD, ROOT, SUB
from tests.graphs.two_steps import TABLE as TWO_STEPS


def session_in(folder: Path, llm: TalkingLLM) -> RagSession:
    services = RagContext(reader=llm, retriever=TableRetriever(TABLE))
    return RagSession(system="naive", context=services, settings=settings_in(folder, embeddings="local:use"))


class SilentLLM(TalkingLLM):
    """Never replies."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = threading.Event()

    async def complete(self, *args: object, **kwargs: object) -> Completion:
        self.was_asked.set()
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


def test_session_leads_a_conversation_beside_its_questions(llm: TalkingLLM, tmp_path: Path) -> None:
    with session_in(tmp_path, llm) as session:
        monday = session.chat("monday")
        monday.ask(CLASS)
        result = monday.ask("And its oil?")
        assert (result.answer, result.standalone_query) == ("Vellin", OIL)
        assert session.ask(OIL).answer == "Vellin"
        assert result.tree is not None
        known = {thread.thread_id for thread in session.graph.list_threads()}
        assert result.tree.root.thread_id in known, "one store has the searches of turns and questions"
    assert [turn["query"] for turn in session.chat("monday").history()] == [CLASS, "And its oil?"], "it opens again"
    session.close()
    with open_conversations(tmp_path, llm) as talks:
        assert [summary.name for summary in talks.summaries()] == ["monday"]


OTHER = "Which oil does KS-2 need?"


@pytest.mark.parametrize(("sharing", "is_other", "saved"), [("equal", False, 1), ("off", False, 0), ("equal", True, 0)])
def test_a_sub_question_of_an_earlier_turn_is_linked_where_settings_and_content_are_equal(
    tmp_path: Path, sharing: str, is_other: bool, saved: int
) -> None:
    table = {**TWO_STEPS, OTHER: [chunk("c", "KS-2 is class Delta.")]}
    same_class = GoldFact(quote="KS-2 is class Delta", question="What class is KS-2?", remaining_question=SUB)
    judge = OracleJudge({**GOLD, OTHER: [same_class, FACTS[1]]})
    llm = TalkingLLM({"And KS-2?": FollowUp((), OTHER)})

    def session(retriever: TableRetriever) -> RagSession:
        services = RagContext(reader=llm, retriever=retriever, judge=judge, limits=Limits(sharing=sharing))
        return RagSession(context=services, settings=settings_in(tmp_path, embeddings="local:use"))

    options = ConversationOptions(answer_from_history="never")
    with session(TableRetriever(table)) as first:
        assert first.chat("monday", options=options).ask(ROOT).tree is not None
    with session(TableRetriever({**table, "new": []} if is_other else table)) as second:
        told = second.chat("monday", options=options).ask("And KS-2?")
    assert told.tree is not None
    assert told.tree.root.query == OTHER
    [linked] = told.tree.root.chunks
    assert told.tree.saved_by_sharing == {"questions": saved, "sub_runs": saved, "llm_calls": saved}
    assert (linked.sub_answer != "", bool(linked.sub_runs)) == (True, not saved)
    assert ("asked already, earlier in the conversation" in told.tree.to_dot()) is bool(saved)
    assert SearchTree.from_json(told.tree.to_json()).saved_by_sharing == told.tree.saved_by_sharing


def test_what_is_said_in_a_conversation_is_recorded_on_request_only(llm: TalkingLLM, tmp_path: Path) -> None:
    with session_in(tmp_path, llm) as session:
        session.chat("monday").ask(CLASS)
        assert session.graph.transcripts_of("question", owner="question") is not None
        assert session.graph.transcripts_of("turn", owner="conversation") is None
    wanted = Recording.of(settings_in(tmp_path, record="full"))
    assert (wanted.record, wanted.conversations) == ("full", True)


def test_each_conversation_of_a_session_has_its_own_options(llm: TalkingLLM, tmp_path: Path) -> None:
    with session_in(tmp_path, llm) as session:
        session.chat("s").ask(CLASS)
        llm.asked()
        session.chat("s", options=ConversationOptions(answer_from_history="never")).ask("And its oil?")
        assert llm.asked() == ["condense", "read"]
        with pytest.raises(SettingsError, match="JUDGETREE_SEARXNG_URL"):
            session.chat("s", options=ConversationOptions(web_or_rag=True))


def test_closing_the_session_ends_a_running_turn(tmp_path: Path) -> None:
    llm, raised = SilentLLM(), list[Exception]()
    session = session_in(tmp_path, llm)

    def ask() -> None:
        try:
            session.chat("s").ask(CLASS)
        except SessionError as error:
            raised.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert llm.was_asked.wait(30)
    session.close()
    asking.join(30)
    assert [str(error) for error in raised] and "closed" in str(raised[0])
