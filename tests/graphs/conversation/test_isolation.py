"""No conversation sees anything of another, whatever they are called, and however many are answered at once."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.graphs.conversation.turn.context import ConversationOptions, TurnLimits
from judgetree.graphs.conversation.turn.result import TurnResult
from judgetree.graphs.conversation.turn.store import conversation_thread, turn_thread
from judgetree.graphs.conversations import Conversations
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import Message
from judgetree.modules.errors import SettingsError
from judgetree.modules.memory.memory import ConversationMemory
from judgetree.modules.memory.schema import row_key
from judgetree.modules.memory.turns import rag_thread_of
from tests.graphs.conversation.talk import (
    ANSWERS,
    CLASS,
    KINDS,
    OIL,
    SCREW,
    TalkingLLM,
    open_conversations,
    settings_in,
)
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk
from tests.modules.fake_embeddings import BagOfWordsEmbedder

NAMES = [
    "a",
    "a ",
    "ab",
    "A",
    "it's",
    'x" or conversation_id != "',
    "%",
    "*",
    "a\\",
    "conversation:a",
    "turn:a",
    "1:a:b",
    "🐈",
    "汉字",
    "null",
]
TURNS = 4
MARK = re.compile(r"mark\d+")


def question(place: int, turn: int) -> str:
    return f"What is part {turn} of mark{place}?"


class MarkedLLM(FakeLLM):
    """Says back the marks that it is shown, and keeps the marks of each call."""

    def __init__(self) -> None:
        super().__init__(self._say)
        self.seen: list[tuple[str, frozenset[str]]] = []
        """Kind of call, and the marks that it was shown."""

    def _say(self, messages: Sequence[Message]) -> str:
        kind, text = KINDS[messages[0][1]], messages[-1][1]
        marks = frozenset(MARK.findall(text))
        self.seen.append((kind, marks))
        if kind == "select":
            return json.dumps({"turns": list(range(1, TURNS + 1))})
        if kind == "assess":
            asked = text.rpartition("\n")[2].partition(": ")[2]
            return json.dumps({"question": asked, "useful": [1, 2, 3], "answer": ""})
        return " ".join(sorted(marks))


@pytest.mark.slow
def test_conversations_of_any_name_see_their_own_data_only(tmp_path: Path) -> None:
    table = {
        question(place, turn): [chunk(f"{place}-{turn}", f"Part {turn} of mark{place} is red.")]
        for place in range(len(NAMES))
        for turn in range(TURNS)
    }
    llm = MarkedLLM()
    memory = ConversationMemory(BagOfWordsEmbedder(), uri=settings_in(tmp_path).milvus_address)
    with (
        memory,
        open_conversations(
            tmp_path,
            llm,
            retriever=TableRetriever(table),
            memory=memory,
            options=ConversationOptions(summary_memory=True),
            limits=TurnLimits(max_recent_turns=1, max_relevant_turns=3),
        ) as talks,
    ):
        for turn in range(TURNS):
            for place, name in enumerate(NAMES):
                assert talks.conversation(name).ask(question(place, turn)).answer == f"mark{place}"
        assert {kind for kind, _ in llm.seen} == {"read", "select", "assess", "summary"}
        assert {len(marks) for _, marks in llm.seen} == {1}, "no call was shown anything of another session"

        kept = background_loop().run(background_loop().run(talks.services.open()).store.all_threads())
        by_name = {each.name: (each_id, each.threads) for each_id, each in kept.items()}
        assert by_name.keys() == set(NAMES)
        everywhere = [thread for each in kept.values() for thread in each.threads]
        assert len(everywhere) == len(set(everywhere)) == len(NAMES) * (1 + TURNS)
        for place, name in enumerate(NAMES):
            asked = [question(place, turn) for turn in range(TURNS)]
            assert [turn["query"] for turn in talks.conversation(name).history()] == asked
            assert [turn["query"] for turn in memory.turns_of(by_name[name][0])] == asked
            assert set(background_loop().run(threads_of(talks, name))) == set(by_name[name][1])

        assert talks.delete("a") == 1 + TURNS
        left = {summary.name: summary.turns for summary in talks.summaries()}
        assert left == dict.fromkeys(NAMES[1:], TURNS)
        assert memory.conversations() == sorted(by_name[name][0] for name in NAMES[1:])
        assert [len(talks.conversation(name).turns()) for name in NAMES[1:]] == [TURNS] * len(NAMES[1:])


async def threads_of(talks: Conversations, name: str) -> list[str]:
    store = (await talks.services.open()).store
    state = await store.load(name)
    assert state is not None
    return await store.threads_of(state)


@pytest.mark.parametrize("name", ["", " \n", "a\x00b", "\ud800", "x" * 1025])
def test_a_name_that_cannot_be_kept_is_refused_at_once(tmp_path: Path, name: str) -> None:
    with open_conversations(tmp_path, TalkingLLM()) as talks, pytest.raises(SettingsError, match="name"):
        talks.conversation(name)


@given(text=st.text(alphabet="1:2a", min_size=2, max_size=8), cuts=st.lists(st.integers(0, 8), min_size=2, max_size=2))
def test_ids_of_other_conversations_or_turns_are_others(text: str, cuts: list[int]) -> None:
    """Also where name and turn are the same text, cut elsewhere."""
    (one, other) = ((text[:cut], text[cut:]) for cut in cuts)
    for id_of in (rag_thread_of, row_key, lambda name, turn: turn_thread(rag_thread_of(name, turn))):
        assert (id_of(*one) == id_of(*other)) == (one == other)
    assert (conversation_thread(one[0]) == conversation_thread(other[0])) == (one[0] == other[0])


# --- at once ---


def test_two_questions_at_once_are_answered_one_after_the_other(talks: Conversations, llm: TalkingLLM) -> None:
    talk = talks.conversation("s")

    async def both() -> list[TurnResult]:
        return await asyncio.gather(talk.aask(CLASS), talk.aask("And its oil?"))

    assert [result.answer for result in asyncio.run(both())] == [ANSWERS[CLASS], ANSWERS[OIL]]
    assert llm.asked() == ["read", "select", "assess", "read"]
    assert [turn["query"] for turn in talk.history()] == [CLASS, "And its oil?"]


def test_one_request_twice_at_once_is_one_turn(talks: Conversations, llm: TalkingLLM) -> None:
    talk = talks.conversation("s")
    results: list[TurnResult] = []
    threads = [
        Thread(target=lambda: results.append(talk.ask(CLASS, request_id="request")), name=f"request-{number}")
        for number in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.resumed for result in results) == [False, True]
    assert results[0].turn == results[1].turn
    assert llm.asked() == ["read"]
    assert len(talk.turns()) == 1


class WaitingLLM(TalkingLLM):
    """Answers nobody before a number of calls wait for it at once."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self._all_are_there = asyncio.Barrier(calls)

    async def complete(self, messages: Sequence[Message], **options: Any) -> Completion:
        await asyncio.wait_for(self._all_are_there.wait(), 30)
        return await super().complete(messages, **options)


def test_twenty_conversations_are_answered_at_once(tmp_path: Path) -> None:
    names = [f"talk {number}" for number in range(20)]

    async def all_at_once() -> list[TurnResult]:
        return await asyncio.gather(*(talks.conversation(name).aask(SCREW) for name in names))

    with open_conversations(tmp_path, WaitingLLM(len(names))) as talks:
        assert [result.answer for result in asyncio.run(all_at_once())] == [ANSWERS[SCREW]] * len(names)
        assert {summary.name for summary in talks.summaries()} == set(names)
        assert all(len(talks.conversation(name).turns()) == 1 for name in names)
