"""Turns are neither lost nor doubled by clocks that jump, or by a lock that does not work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from judgetree.graphs.conversation.turn.state import ConversationState
from judgetree.graphs.conversation.turn.store import ConversationStore
from judgetree.graphs.conversations import Conversations
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.completion import Completion
from judgetree.modules.errors import ConversationBusy, UnknownConversation
from judgetree.modules.memory.turns import Branch, QaPair
from tests.clocks import Clock
from tests.graphs.conversation.skewed_talk import talk_in_many, talk_with_jumping_clocks
from tests.graphs.conversation.talk import CLASS, OIL, SCREW, TalkingLLM, open_conversations


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_two_processes_with_jumping_clocks_lose_and_double_no_turn(
    store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = "" if store == "sqlite" else str(request.getfixturevalue(f"{store}_url"))
    told = talk_with_jumping_clocks(tmp_path, url, turns=10)
    assert (told.lost, told.doubled) == (0, 0)
    assert sorted(told.numbers) == [turn["turn_number"] for turn in told.kept] == [*range(1, len(told.answered) + 1)]
    assert told.seen == len(told.answered)


@pytest.mark.slow
def test_two_processes_lose_and_double_no_turn_of_twenty_conversations(redis_url: str, tmp_path: Path) -> None:
    told = talk_in_many(tmp_path, redis_url, conversations=20, turns=6)
    assert [(each.lost, each.doubled, each.seen) for each in told] == [(0, 0, 6)] * 20
    assert [sorted(each.numbers) for each in told] == [[1, 2, 3, 4, 5, 6]] * 20


@pytest.mark.parametrize("back_s", [60, 0.0, -60])
def test_a_new_process_whose_clock_is_behind_goes_on_where_the_last_one_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back_s: float
) -> None:
    clock = Clock(monkeypatch)
    for query in (CLASS, OIL, SCREW):
        with open_conversations(tmp_path, TalkingLLM()) as talks:
            talks.conversation("a").ask(query)
            talks.conversation("b").ask(query)
        clock.in_another_process(clock.now_s - back_s)
    with open_conversations(tmp_path, TalkingLLM()) as talks:
        assert [turn["query"] for turn in talks.conversation("a").history()] == [CLASS, OIL, SCREW]
        assert [each.name for each in talks.summaries()] == ["b", "a"]


# --- a lock that does not work, as on a network disk without locks ---


class Interrupted(TalkingLLM):
    """Lets another process do something to the conversation while a question is being answered."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], Awaitable[None]]] = []

    async def complete(self, *args: Any, **kwargs: Any) -> Completion:
        if self.meanwhile:
            await self.meanwhile.pop()()
        return await super().complete(*args, **kwargs)


@pytest.fixture
def llm() -> Interrupted:
    return Interrupted()


@pytest.fixture
def talks(tmp_path: Path, llm: Interrupted) -> Iterator[Conversations]:
    with open_conversations(tmp_path, llm) as opened:
        yield opened


async def store_of(talks: Conversations) -> ConversationStore:
    return (await talks.services.open()).store


def answered_elsewhere(talks: Conversations, query: str) -> Callable[[], Awaitable[None]]:
    """Append a turn to the main branch, as another process does."""

    async def answer() -> None:
        state = await (await store_of(talks)).load("a")
        assert state is not None
        last = state["chat_history"][-1]
        turn: QaPair = {
            **last,
            "turn_id": f"turn {query}",
            "query": query,
            "parent_turn_id": last["turn_id"],
            "turn_number": last["turn_number"] + 1,
        }
        head = {"head_turn_id": turn["turn_id"], "head_number": turn["turn_number"]}
        branches = {**state["branches"], "main": cast(Branch, state["branches"]["main"] | head)}
        changes = ConversationState(chat_history=[*state["chat_history"], turn], branches=branches)
        await (await store_of(talks)).save(state, changes)

    return answer


def test_a_turn_that_another_one_has_overtaken_is_saved_on_a_branch_of_its_own(
    talks: Conversations, llm: Interrupted
) -> None:
    talk = talks.conversation("a")
    talk.ask(CLASS)
    llm.meanwhile = [answered_elsewhere(talks, OIL)]
    assert talk.ask(SCREW).answer == "M8"
    assert sorted((turn["query"], turn["turn_number"]) for turn in talk.turns()) == [(CLASS, 1), (OIL, 2), (SCREW, 2)]
    assert [(each["head_number"], each["fork_number"]) for each in talk.branches()] == [(2, 0), (2, 1)]
    assert [turn["query"] for turn in talk.history()] == [CLASS, SCREW]
    talk.switch("main")
    assert [turn["query"] for turn in talk.history()] == [CLASS, OIL]
    assert talk.open_turn is None


def test_a_turn_keeps_its_branch_where_only_something_else_was_changed(talks: Conversations, llm: Interrupted) -> None:
    talk = talks.conversation("a")
    first = talk.ask(CLASS)

    async def rename() -> None:
        state = await (await store_of(talks)).load("a")
        assert state is not None
        await (await store_of(talks)).save(state, ConversationState(title="renamed"))

    llm.meanwhile = [rename]
    assert talk.ask(SCREW).turn is not None
    assert [turn["query"] for turn in talk.history()] == [CLASS, SCREW]
    assert [each.title for each in talks.summaries()] == ["renamed"]
    assert talk.history()[0]["turn_id"] == first.turn_id


def test_a_turn_that_another_process_resumed_and_saved_is_saved_once(talks: Conversations, llm: Interrupted) -> None:
    talk = talks.conversation("a")
    talk.ask(CLASS)

    async def resume() -> None:
        store = await store_of(talks)
        state = await store.load("a")
        assert state is not None
        waiting = state["open_turn"]
        assert waiting is not None
        last = state["chat_history"][-1]
        turn: QaPair = {**last, "query": SCREW, "turn_id": waiting["turn_id"], "turn_number": 2, "answer": "theirs"}
        head = {"head_turn_id": turn["turn_id"], "head_number": 2}
        branches = {**state["branches"], "main": cast(Branch, state["branches"]["main"] | head)}
        history = [*state["chat_history"], turn]
        await store.save(state, ConversationState(chat_history=history, branches=branches, open_turn=None))

    llm.meanwhile = [resume]
    assert talk.ask(SCREW).answer == "theirs"
    assert [turn["query"] for turn in talk.turns()] == [CLASS, SCREW]
    assert len(talk.branches()) == 1


def test_a_turn_of_a_conversation_that_was_deleted_meanwhile_says_so(talks: Conversations, llm: Interrupted) -> None:
    talks.conversation("a").ask(CLASS)

    async def delete() -> None:
        await (await store_of(talks)).delete_threads(["conversation:a"])

    llm.meanwhile = [delete]
    with pytest.raises(UnknownConversation, match="'a' was deleted while its question was answered"):
        talks.conversation("a").ask(SCREW)


def test_a_change_of_a_conversation_that_was_written_meanwhile_is_refused(talks: Conversations) -> None:
    talks.conversation("a").ask(CLASS)
    services = talks.services

    async def change() -> None:
        async with services.hold("a") as opened:
            state = await opened.store.load("a")
            assert state is not None
            await answered_elsewhere(talks, OIL)()
            await opened.store.save(state, ConversationState(title="mine"))

    with pytest.raises(ConversationBusy, match="'a' was changed by another process although it was locked"):
        background_loop().run(change())
