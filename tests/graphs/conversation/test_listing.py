"""The list of conversations by pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.graphs.conversation.identity import new_conversation_id
from judgetree.graphs.conversation.turn.state import ConversationState, new_conversation
from judgetree.graphs.conversation.turn.store import ConversationStore
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.threads.checkpoints import open_checkpointer
from judgetree.modules.background_loop import background_loop
from judgetree.modules.memory.turns import utc_now
from tests.graphs.conversation.talk import CLASS

URLS = ["memory:", "sqlite:///{folder}/c.sqlite"]


async def begun(store: ConversationStore, name: str) -> ConversationState:
    state = new_conversation(name, new_conversation_id("s"), utc_now())
    await store.begin(state)
    return state


@pytest.mark.parametrize("url", URLS)
def test_pages_go_by_the_last_change_and_read_no_other_state(url: str, tmp_path: Path) -> None:
    async def led() -> None:
        async with open_checkpointer(url.format(folder=tmp_path)) as saver:
            store = ConversationStore(saver)
            states = [await begun(store, f"{number:04}") for number in range(40)]
            await begun(store, "other")
            await store.delete_threads(["conversation:0039"])
            await store.save(states[3], ConversationState(title="changed"))
            page = await store.page(3, prefix="00")
            assert [(each.name, each.title) for each in page.summaries] == [
                ("0003", "changed"),
                ("0038", ""),
                ("0037", ""),
            ]
            assert page.total == 39
            ends = await store.page(5, offset=37, prefix="00")
            assert [each.name for each in ends.summaries] == ["0001", "0000"]
            assert [each.name for each in (await store.page()).summaries][:2] == ["0003", "other"]
            assert await store.page(0) == await store.page(0, offset=100)

    background_loop().run(led())


def test_conversations_of_another_format_are_counted_and_left_out(
    opened: Callable[..., Conversations], caplog: pytest.LogCaptureFixture
) -> None:
    talks = opened()
    talks.conversation("a").ask(CLASS)

    async def spoil() -> None:
        store = (await talks.services.open()).store
        state = new_conversation("b", new_conversation_id("s"), utc_now())
        await store.begin(ConversationState(**{**state, "format": "judgetree-conversation/0"}))

    background_loop().run(spoil())
    page = talks.page()
    assert ([each.name for each in page.summaries], page.total) == (["a"], 2)
    assert "left out of the list" in caplog.text


def test_contents_are_those_of_one_moment(talks: Conversations) -> None:
    talk = talks.conversation("a")
    assert talk.contents() is None
    first = talk.ask(CLASS)
    contents = talk.contents()
    assert contents is not None
    assert (contents.summary, list(contents.turns)) == (talks.summaries()[0], [first.turn])
    assert contents.history() == talk.history()
