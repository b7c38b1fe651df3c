"""Stops of the question that a conversation is answering."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from judgetree.graphs.conversations import Conversations
from judgetree.modules.background_loop import background_loop
from judgetree.modules.errors import NoRunningQuestion
from tests.graphs.conversation.talk import CLASS, OIL, HangingRetriever, saved


def test_a_stopped_question_is_answered_and_the_next_one_is_searched_for(opened: Callable[..., Conversations]) -> None:
    retriever = HangingRetriever()
    talks = opened(retriever=retriever)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(talks.conversation("s").ask, CLASS)
        assert retriever.reached.wait(60)
        with pytest.raises(NoRunningQuestion):
            talks.conversation("other").stop()
        talks.conversation("s").stop()
        result = running.result(60)
    assert (saved(result)["status"], result.usage["llm_calls"]) == ("refused", 1)
    assert result.tree is not None
    assert result.tree.spent_limits == {"stopped"}
    assert talks.conversation("s").open_turn is None
    assert talks.conversation("s").ask(OIL, parent_turn_id="").answer == "Vellin"


def test_where_no_question_runs_a_stop_says_so(talks: Conversations) -> None:
    talk = talks.conversation("s")
    with pytest.raises(NoRunningQuestion, match="answers no question that could be stopped"):
        talk.stop()
    talk.ask(CLASS)
    with pytest.raises(NoRunningQuestion, match="answers no question that could be stopped"):
        talk.stop()


def test_a_question_of_another_process_is_not_stopped(talks: Conversations) -> None:
    async def stopped_elsewhere() -> None:
        opened = await talks.services.open()
        async with opened.locks.hold("s"):
            await talks.conversation("s").astop()

    with pytest.raises(NoRunningQuestion, match="only the process that answers it can stop it"):
        background_loop().run(stopped_elsewhere())
