"""What cannot be kept, and what cannot be asked, is refused before anything is written; in every store."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from judgetree.graphs.conversation.request import Request
from judgetree.graphs.conversation.turn.state import ConversationState
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.background_loop import background_loop
from judgetree.modules.errors import CollectionError, RequestIdTaken, SettingsError
from judgetree.modules.memory.memory import ConversationMemory
from judgetree.modules.memory.turns import QaPair
from judgetree.modules.settings import Settings
from tests.graphs.conversation.talk import ANSWERS, CLASS, OIL, TABLE, TalkingLLM, open_conversations, settings_in
from tests.graphs.fakes import TableRetriever
from tests.modules.fake_embeddings import BagOfWordsEmbedder

UNSTORABLE = ["half a \ud800", "NUL \x00"]
LONG = "x" * 1_025


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    if request.param == "sqlite":
        return settings_in(tmp_path)
    return settings_in(tmp_path, checkpoints=str(request.getfixturevalue(f"{request.param}_url")))


async def checkpoints_of(talks: Conversations) -> int:
    return len([None async for _ in (await talks.services.open()).store.saver.alist(None)])


@pytest.mark.parametrize("text", UNSTORABLE)
def test_an_unstorable_request_is_refused_before_it_is_written(settings: Settings, text: str) -> None:
    llm = TalkingLLM()
    with open_conversations(settings.home, llm, settings=settings) as talks:
        talk = talks.conversation("s")
        before = background_loop().run(checkpoints_of(talks))
        for request in (
            {"query": text},
            {"query": CLASS, "request_id": text},
            {"query": CLASS, "request_id": LONG},
            {"query": CLASS, "parent_turn_id": text},
            {"query": CLASS, "chat_history": [("q", text)]},
            {"query": CLASS, "chat_history": [{"role": "user", "content": text}]},
        ):
            with pytest.raises(SettingsError, match=r"cannot be stored|too long"):
                talk.ask(**request)  # type: ignore[arg-type]
        assert background_loop().run(checkpoints_of(talks)) == before
        assert (llm.asked(), talk.open_turn, talk.turns()) == ([], None, [])
        talk.ask(CLASS)
        for name in (text, LONG):
            with pytest.raises(SettingsError, match="new name of the branch"):
                talk.rename_branch("main", name)
        assert talk.active_branch == "main"
        talks.delete("s")


@pytest.mark.parametrize("text", UNSTORABLE)
def test_an_unstorable_question_is_refused_at_once(settings: Settings, text: str) -> None:
    llm = TalkingLLM()
    services = RagContext(reader=llm, retriever=TableRetriever(TABLE))
    with RagSession(system="naive", context=services, settings=settings) as session:
        before = len(session.graph.list_threads(100))
        for question, thread_id in ((text, None), (CLASS, text), (CLASS, LONG)):
            with pytest.raises(SettingsError, match=r"cannot be stored|too long"):
                session.ask(question, thread_id=thread_id)
        assert len(session.graph.list_threads(100)) == before
        assert llm.asked() == []


def test_an_unknown_collection_leaves_no_open_turn(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    memory = ConversationMemory(BagOfWordsEmbedder(), uri=settings.milvus_address)
    with memory, Conversations("nowhere", system="naive", settings=settings, memory=memory) as talks:
        talk = talks.conversation("s")
        with pytest.raises(CollectionError, match="no collection 'nowhere'"):
            talk.ask(CLASS)
        assert (talk.open_turn, talks.summaries()) == (None, [])


def test_a_history_of_dicts_with_a_greeting_and_tool_messages_is_taken(tmp_path: Path) -> None:
    llm = TalkingLLM()
    with open_conversations(tmp_path, llm) as talks:
        result = talks.conversation("s").ask(
            "And its oil?",
            chat_history=[
                {"role": "assistant", "content": "Hello, what can I do for you?"},
                {"role": "user", "content": CLASS},
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "tool", "content": "{}", "tool_call_id": "1"},
                {"role": "assistant", "content": "Delta"},
            ],
        )
        assert (result.answer, result.turn and result.turn["standalone_query"]) == (ANSWERS[OIL], OIL)


@pytest.mark.parametrize(
    ("asked_of", "is_the_same"),
    [
        ({"system": "judge", "collection": "one"}, True),
        ({"system": "naive", "collection": "one"}, False),
        ({"system": "judge", "collection": "other"}, False),
    ],
)
@pytest.mark.parametrize("request_id", ["r", ""])
def test_a_saved_turn_answers_a_repeated_request_of_its_own_system_and_collection(
    asked_of: dict[str, str], is_the_same: bool, request_id: str
) -> None:
    request = Request(
        query=CLASS, parent_turn_id="", request_id=request_id, regenerate=False, chat_history=[], **asked_of
    )
    turn = cast(
        QaPair,
        {"query": CLASS, "request_id": request_id, "parent_turn_id": "", "system": "judge", "collection": "one"},
    )
    if request_id and not is_the_same:
        with pytest.raises(RequestIdTaken, match=r"before of judge over one\. Give"):
            request.has_id_of(turn)
    elif request_id:
        assert request.has_id_of(turn)
    else:
        assert request.may_repeat(turn, cast(ConversationState, {})) is is_the_same
