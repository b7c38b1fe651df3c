"""Whatever fails in the middle of a turn, the same question again gives one copy of it, and pays for nothing twice."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import cast

import pytest
from langchain_core.documents import Document
from langgraph.types import interrupt

from judgetree.graphs.conversation.conversation import FIRST, Conversation
from judgetree.graphs.conversation.delivery import Delivery
from judgetree.graphs.conversation.turn.context import TurnLimits
from judgetree.graphs.conversation.turn.events import ConversationEvent, DoneEvent, Listener
from judgetree.graphs.conversation.turn.result import TurnResult
from judgetree.graphs.conversations import Conversations
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import CollectionError, MilvusFailure, ModelCallError, SettingsError
from judgetree.modules.memory.memory import ConversationMemory
from judgetree.modules.memory.turns import QaPair
from tests.graphs.conversation.killed_talk import kill_turns
from tests.graphs.conversation.talk import (
    ANSWERS,
    CLASS,
    DOWN,
    OIL,
    SCREW,
    TABLE,
    TalkingLLM,
    open_conversations,
    settings_in,
)
from tests.graphs.fakes import TableRetriever
from tests.modules.fake_embeddings import BagOfWordsEmbedder

FOLLOW_UP, CALLS = "And its oil?", ["select", "assess", "read"]
BOTH = [ANSWERS[CLASS], ANSWERS[OIL]]


class FailingMemory(ConversationMemory):
    """A real memory, of which methods fail on request."""

    def __init__(self, folder: Path) -> None:
        super().__init__(BagOfWordsEmbedder(), uri=settings_in(folder).milvus_address)
        self.broken: dict[str, Exception] = {}

    def missing(self, conversation_id: str, turn_ids: Collection[str]) -> set[str]:
        self._fail("missing")
        return super().missing(conversation_id, turn_ids)

    def add_turns(self, conversation_id: str, turns: Sequence[QaPair]) -> None:
        self._fail("add_turns")
        super().add_turns(conversation_id, turns)

    def _fail(self, method: str) -> None:
        if method in self.broken:
            raise self.broken[method]


class FailingStore:
    """Makes the saver of open conversations fail from the nth write on, until it is mended."""

    def __init__(self, talks: Conversations, patch: pytest.MonkeyPatch) -> None:
        self.writes_left = -1
        """Until it fails; negative: it does not."""
        self.has_failed = False
        saver = background_loop().run(talks.services.open()).store.saver
        for method in ("aput", "aput_writes", "adelete_thread"):
            patch.setattr(saver, method, self._failing(getattr(saver, method)))

    def fail_after(self, writes: int) -> None:
        self.writes_left, self.has_failed = writes, False

    def mend(self) -> None:
        self.writes_left = -1

    def _failing(self, write: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def failing(*arguments: object, **options: object) -> object:
            if self.writes_left == 0:
                self.has_failed = True
                raise sqlite3.OperationalError("disk I/O error")
            self.writes_left -= 1
            return await write(*arguments, **options)

        return failing


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[FailingMemory]:
    with FailingMemory(tmp_path) as opened:
        yield opened


@pytest.fixture
def talks(tmp_path: Path, llm: TalkingLLM, memory: FailingMemory) -> Iterator[Conversations]:
    with open_conversations(tmp_path, llm, memory=memory) as opened:
        yield opened


def answers(turns: Sequence[QaPair]) -> list[str]:
    return [turn["answer"] for turn in turns]


def own_threads(talks: Conversations, name: str) -> list[str]:
    store = background_loop().run(talks.services.open()).store
    state = background_loop().run(store.load(name))
    assert state is not None
    return [thread for thread in background_loop().run(store.threads_of(state)) if thread.startswith("turn:")]


@pytest.mark.parametrize(
    ("is_first", "request_id"), [(True, "request"), (False, "")], ids=["first turn, with an id", "later turn, without"]
)
def test_a_store_that_fails_at_any_write_costs_one_call_and_no_turn(
    talks: Conversations,
    llm: TalkingLLM,
    memory: FailingMemory,
    monkeypatch: pytest.MonkeyPatch,
    is_first: bool,
    request_id: str,
) -> None:
    store = FailingStore(talks, monkeypatch)
    query, calls = (CLASS, ["read"]) if is_first else (FOLLOW_UP, CALLS)
    expected = BOTH[: 1 if is_first else 2]
    step = 0
    store.has_failed = True
    while store.has_failed:
        talk = talks.conversation(f"fails after {step} writes")
        if not is_first:
            talk.ask(CLASS)
        llm.asked()
        store.fail_after(step)
        try:
            talk.ask(query, request_id=request_id)
        except SettingsError as error:
            assert "cannot be used: disk I/O error. Check JUDGETREE_CHECKPOINTS" in str(error)
        store.mend()
        assert answers(talk.history()) in (expected[:-1], expected), "no half turn"

        result = talk.ask(query, request_id=request_id) if store.has_failed else None
        assert result is None or result.answer == expected[-1]
        assert (
            answers(talk.history())
            == answers(talk.turns())
            == answers(memory.turns_of(talk.conversation_id))
            == expected
        )
        assert len(llm.asked()) <= len(calls) + 1, "the one in flight, whose reply was not written yet"
        assert own_threads(talks, talk.name) == []
        assert talk.open_turn is None
        step += 1
    assert step > 10


@pytest.mark.parametrize("place", range(len(CALLS)))
def test_a_turn_that_crashes_in_a_call_resumes_it(talks: Conversations, llm: TalkingLLM, place: int) -> None:
    talk = talks.conversation("s")
    talk.ask(CLASS)
    llm.asked()
    llm.broken = {CALLS[place]: RuntimeError("a bug")}
    with pytest.raises(RuntimeError, match="a bug"):
        talk.ask(FOLLOW_UP)
    assert llm.asked() == CALLS[: place + 1]
    assert answers(talk.history()) == BOTH[:1]
    llm.broken = {}
    assert talk.ask(FOLLOW_UP).resumed
    assert llm.asked() == CALLS[place:]
    assert answers(talk.turns()) == BOTH


@pytest.mark.parametrize("kind", CALLS)
def test_a_turn_whose_model_is_down_is_kept_once(talks: Conversations, llm: TalkingLLM, kind: str) -> None:
    talk = talks.conversation("s")
    talk.ask(CLASS)
    llm.broken = {kind: DOWN}
    first = talk.ask(FOLLOW_UP, request_id="request")
    assert answers(talk.history()) == (BOTH[:1] if first.status == "failed" else BOTH)
    llm.broken = {}
    again = talk.ask(FOLLOW_UP, request_id="request")
    assert (again.turn_id, again.resumed) == (first.turn_id, True)
    assert answers(talk.turns()) == BOTH


@pytest.mark.parametrize("error", [CollectionError("Milvus is gone"), ModelCallError("the embedder is down")], ids=repr)
def test_a_memory_that_cannot_be_written_is_made_up_for_at_the_next_turn(
    talks: Conversations, memory: FailingMemory, llm: TalkingLLM, error: Exception
) -> None:
    talk = talks.conversation("s")
    memory.broken = {"add_turns": error}
    assert talk.ask(CLASS).status == "answered"
    assert memory.turns_of(talk.conversation_id) == []
    memory.broken = {}
    talk.ask(FOLLOW_UP)
    assert answers(talk.turns()) == answers(memory.turns_of(talk.conversation_id)) == BOTH
    assert llm.asked() == ["read", *CALLS]


def test_a_crash_before_memory_is_mended(talks: Conversations, memory: FailingMemory, llm: TalkingLLM) -> None:
    talk = talks.conversation("s")
    memory.broken = {"add_turns": RuntimeError("a bug")}
    with pytest.raises(RuntimeError, match="a bug"):
        talk.ask(CLASS)
    assert memory.turns_of(talk.conversation_id) == []
    memory.broken = {}
    result = talk.ask(CLASS)
    assert (result.answer, result.resumed) == (ANSWERS[CLASS], True)
    assert talk.turns() == memory.turns_of(talk.conversation_id) == [result.turn]
    assert llm.asked() == ["read"]


async def ask_once(talk: Conversation, *, arrives: bool) -> TurnResult:
    """Ask as a server does; the caller is gone before the end is sent unless it ``arrives``."""
    delivery = Delivery()
    async with aclosing(cast(AsyncGenerator[ConversationEvent], talk.astream(CLASS, delivery=delivery))) as events:
        async for event in events:
            if isinstance(event, DoneEvent):
                result = event.result
                if not arrives:
                    break
                delivery.confirm()
    return result


def test_the_same_question_gets_its_turn_until_the_answer_has_arrived(talks: Conversations, llm: TalkingLLM) -> None:
    talk = talks.conversation("s")
    lost, again, arrived = (asyncio.run(ask_once(talk, arrives=arrives)) for arrives in (False, False, True))
    assert {result.turn_id for result in (again, arrived)} == {lost.turn_id}
    assert (again.resumed, again.answer) == (True, ANSWERS[CLASS])
    assert llm.asked() == ["read"]
    assert own_threads(talks, "s") == []
    assert talk.ask(CLASS).turn_id != lost.turn_id


def test_a_conversation_waits_for_the_arrival_of_an_answer_for_some_time(talks: Conversations) -> None:
    talk = talks.conversation("s")
    events = list(talk.stream(CLASS, delivery=Delivery(wait_s=0.01)))
    assert isinstance(events[-1], DoneEvent)
    assert talk.ask(OIL).answer == ANSWERS[OIL]
    assert own_threads(talks, "s") == []


def test_an_unreadable_memory_leaves_the_turn_open(
    talks: Conversations, memory: FailingMemory, llm: TalkingLLM
) -> None:
    talk = talks.conversation("s")
    talk.ask(CLASS)
    memory.broken = {"missing": CollectionError("Milvus is gone")}
    with pytest.raises(CollectionError, match="Milvus is gone"):
        talk.ask(FOLLOW_UP)
    assert (talk.open_turn or {})["query"] == FOLLOW_UP
    memory.broken = {}
    assert talk.ask(FOLLOW_UP).resumed
    assert answers(talk.turns()) == BOTH
    assert llm.asked() == ["read", *CALLS]


def test_a_turn_is_answered_without_a_memory_that_cannot_be_reached(
    tmp_path: Path, memory: FailingMemory, llm: TalkingLLM, caplog: pytest.LogCaptureFixture
) -> None:
    limits = TurnLimits(max_recent_turns=1)
    with open_conversations(tmp_path, llm, memory=memory, limits=limits) as talks:
        talk = talks.conversation("s")
        down = MilvusFailure("Milvus is gone")
        memory.broken = {"missing": down, "add_turns": down}
        questions = [CLASS, FOLLOW_UP, CLASS, SCREW]
        given = [talk.ask(question).answer for question in questions]
        assert given == [*BOTH, ANSWERS[CLASS], ANSWERS[SCREW]]
        assert caplog.text.count("is answered without it (Milvus is gone)") == 4
        memory.broken = {}
        talk.ask(CLASS)
        assert answers(memory.turns_of(talk.conversation_id)) == [*given, ANSWERS[CLASS]], "no turn is lost"
        assert answers(talk.history()) == [*given, ANSWERS[CLASS]]


def test_a_question_that_is_asked_again_on_purpose_is_a_turn_of_its_own(talks: Conversations) -> None:
    talk = talks.conversation("s")
    results = [talk.ask(CLASS), talk.ask(CLASS), talk.ask(CLASS, request_id="a"), talk.ask(CLASS, request_id="b")]
    assert len({result.turn_id for result in results}) == 4
    assert not any(result.resumed for result in results)
    assert len(talk.history()) == 4


def test_an_undelivered_answer_is_not_given_later(talks: Conversations) -> None:
    talk = talks.conversation("s")
    lost = asyncio.run(ask_once(talk, arrives=False))
    assert own_threads(talks, "s")
    talk.ask(FOLLOW_UP)
    assert own_threads(talks, "s") == []
    assert talk.ask(CLASS, parent_turn_id=FIRST).turn_id != lost.turn_id
    assert len(talk.turns()) == 3


def test_an_answer_is_given_though_its_thread_cannot_be_deleted(
    talks: Conversations, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    talk = talks.conversation("s")
    with monkeypatch.context() as patch:
        saver = background_loop().run(talks.services.open()).store.saver

        async def fail(thread_id: str) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        patch.setattr(saver, "adelete_thread", fail)
        assert talk.ask(CLASS).answer == ANSWERS[CLASS]
    assert "disk I/O error" in caplog.text
    talk.ask(FOLLOW_UP)
    assert own_threads(talks, "s") == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="its processes are forked")
@pytest.mark.parametrize(("store", "kills"), [("sqlite", 4), ("redis", 2)])  # whose locks last ten seconds longer
def test_turns_whose_process_is_killed_are_there_once(
    store: str, kills: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(request.getfixturevalue("redis_url")) if store == "redis" else ""
    talk = kill_turns(tmp_path, kills=kills, checkpoints=url)
    assert talk.kills == kills
    assert talk.is_whole, talk
    assert talk.calls_made_twice <= talk.kills, "one at most was in flight at each"


class AskingRetriever(TableRetriever):
    """A retriever that wants to ask a person, as long as it is in doubt."""

    in_doubt = True

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        if self.in_doubt:
            interrupt("Sure?")
        return await super().asearch(query, meter=meter)


@pytest.mark.parametrize("listener", [None, lambda event: None])
def test_an_interrupted_turn_fails_clearly_and_stays_open(
    opened: Callable[..., Conversations], listener: Listener | None
) -> None:
    retriever = AskingRetriever(TABLE)
    talk = opened(retriever=retriever).conversation("t")
    result = talk.ask(CLASS, on_event=listener)
    assert (result.status, result.answer) == ("failed", "")
    assert "waits for an answer to: 'Sure?'" in result.error
    retriever.in_doubt = False
    again = talk.ask(CLASS, on_event=listener)
    assert (again.answer, again.turn_id, again.resumed) == ("Delta", result.turn_id, True)
