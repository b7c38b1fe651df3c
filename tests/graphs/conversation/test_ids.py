"""A name is a label within one store: what stands behind it in another store, or did in another life, is apart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from typing_extensions import TypedDict

from judgetree.graphs.conversation.identity import is_of_store
from judgetree.graphs.conversation.tree import ConversationTree
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.threads.checkpoints import open_checkpointer, record_graph
from judgetree.modules.errors import LoadingError
from judgetree.modules.memory.memory import ConversationMemory
from tests.graphs.conversation.talk import ANSWERS, CLASS, OIL, SCREW, TalkingLLM, open_conversations, settings_in
from tests.modules.conftest import LiteServer, lite_server  # noqa: F401 - a fixture
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.memories import new_name

SECRET = "My password is swordfish."


class EavesdroppingLLM(TalkingLLM):
    """Keeps all that it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = ""

    def _say(self, messages: object) -> str:
        self.shown += str(messages)
        return super()._say(messages)  # type: ignore[arg-type]


Open = Callable[..., Conversations]


@pytest.fixture
def open_home(tmp_path: Path, lite_server: LiteServer) -> Iterator[Open]:  # noqa: F811
    """Opens the conversations of a home folder; all have their memory in one collection of a Milvus server."""
    collection, opened = new_name(), []

    def open_one(home: str, llm: TalkingLLM | None = None, **changes: object) -> Conversations:
        memory = ConversationMemory(BagOfWordsEmbedder(), collection=collection, uri=lite_server.uri)
        folder = tmp_path / home
        folder.mkdir(exist_ok=True)
        settings = settings_in(folder, **changes)
        talks = open_conversations(folder, llm or TalkingLLM(), memory=memory, settings=settings)
        opened.append((talks, memory))
        return talks

    yield open_one
    for talks, memory in opened:
        talks.close()
        memory.close()


def asked(talks: Conversations) -> list[str]:
    return [turn["query"] for turn in talks.conversation("chat").turns()]


def test_two_homes_on_one_server_neither_mix_nor_delete_each_other(open_home: Open) -> None:
    llm = EavesdroppingLLM()
    one, other = open_home("one"), open_home("other", llm)
    one.conversation("chat").ask(SECRET)
    other.conversation("chat").ask(CLASS)
    other.conversation("chat").ask("And its oil?")
    assert "swordfish" not in llm.shown
    assert (asked(one), asked(other)) == ([SECRET], [CLASS, "And its oil?"])

    later = datetime.now(UTC) + timedelta(days=2)
    other.conversation("late").ask(SCREW)
    other.delete("chat")
    assert asked(one) == [SECRET]
    assert one.delete_old_conversations(1, clock=lambda: later).conversations == ("chat",)
    assert len(other.conversation("late").turns()) == 1
    one.conversation("chat").ask(OIL)
    report = other.delete_old_conversations(1, clock=lambda: later)
    assert (report.conversations, report.orphans) == (("late",), ())
    assert asked(one) == [OIL]


def test_a_new_life_of_checkpoints_in_memory_sees_nothing_of_the_old(open_home: Open) -> None:
    first = open_home("home", checkpoints="memory:")
    first.conversation("chat").ask(SECRET)
    first.close()
    llm = EavesdroppingLLM()
    second = open_home("home", llm, checkpoints="memory:")
    talk = second.conversation("chat")
    assert (talk.history(), talk.conversation_id) == ([], "")
    talk.ask(CLASS)
    assert talk.ask("And its oil?").answer == ANSWERS[OIL]
    assert "swordfish" not in llm.shown
    assert asked(second) == [CLASS, "And its oil?"]


def test_a_conversation_begun_again_has_another_id(tmp_path: Path) -> None:
    with open_conversations(tmp_path, TalkingLLM()) as talks:
        talk = talks.conversation("chat")
        result = talk.ask(CLASS)
        store_id, _, own = talk.conversation_id.partition(".")
        assert result.conversation_id == talk.conversation_id
        talks.delete("chat")
        talk.ask(CLASS)
        assert is_of_store(talk.conversation_id, store_id)
        assert not talk.conversation_id.endswith(own)
        assert ConversationTree.from_json(talk.tree().to_json()).conversation_id == talk.conversation_id


class EarlierState(TypedDict, total=False):
    schema_version: int
    title: str
    chat_history: list[dict[str, str]]


def write_as_before(folder: Path, name: str, values: Mapping[str, object], metadata: Mapping[str, object]) -> None:
    """As earlier versions did: the state of a LangGraph graph, on the conversation's thread."""
    config: RunnableConfig = {"configurable": {"thread_id": f"conversation:{name}"}, "metadata": dict(metadata)}

    async def write() -> None:
        async with open_checkpointer(settings_in(folder).checkpoint_url) as saver:
            await record_graph(EarlierState, saver).aupdate_state(config, dict(values), as_node="record")

    asyncio.run(write())


def test_a_conversation_of_an_earlier_format_is_refused_by_name(tmp_path: Path) -> None:
    turn = {"query": "q", "answer": "a", "timestamp": "2020-01-01"}
    write_as_before(tmp_path, "first", {"chat_history": [turn]}, {})
    kind = {"kind": "conversation", "conversation_id": "second"}
    write_as_before(tmp_path, "second", {"schema_version": 2, "title": "q"}, kind)
    llm = TalkingLLM()
    with open_conversations(tmp_path, llm) as talks:
        for name in ("first", "second"):
            talk = talks.conversation(name)
            for use in (lambda: talk.ask(CLASS), lambda: talk.switch("main"), talk.history, lambda: talks.delete(name)):  # noqa: B023
                with pytest.raises(LoadingError, match=rf"'{name}' has no format; .*'judgetree-conversation/3' only"):
                    use()
        talks.conversation("mine").ask(CLASS)
        assert llm.asked() == ["read"]
        assert [summary.name for summary in talks.summaries()] == ["mine"]
        assert set(talks.delete_old_conversations(1).unreadable) == {"first", "second"}
