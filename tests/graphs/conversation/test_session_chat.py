"""Conversations of a session: its store, models and collection are theirs, and closing it closes them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from judgetree.graphs.conversation.turn.context import ConversationOptions
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.recording import Recording
from judgetree.modules.calls.completion import Completion
from judgetree.modules.errors import SessionError, SettingsError
from tests.graphs.conversation.talk import CLASS, OIL, TABLE, TalkingLLM, open_conversations, settings_in
from tests.graphs.fakes import TableRetriever


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
