"""No search is saved under the id of a conversation, a turn or the store, which it would overwrite."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.graphs.conversation.turn.store import conversation_thread, turn_thread
from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.session import RagSession
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.errors import SettingsError
from judgetree.modules.judge.oracle import OracleJudge
from judgetree.modules.settings import load_settings
from tests.app.conftest import COLLECTION, Cli
from tests.attacks.test_deleting import begin_two_conversations
from tests.graphs.fakes import FakeLLM, TableRetriever

QUESTION = "Which vessel does Norm A name?"
TAKEN = (
    conversation_thread("old"),
    conversation_thread(""),
    turn_thread("a" * 32),
    "judgetree:store",
    "judgetree:anything",
)
WRITING: dict[str, Callable[[RagGraph, str], object]] = {
    "invoke": lambda graph, thread: graph.invoke(QUESTION, _config(thread)),
    "stream": lambda graph, thread: list(graph.stream(QUESTION, _config(thread))),
    "batch": lambda graph, thread: graph.batch([QUESTION], [_config(thread)]),
    "update_state": lambda graph, thread: graph.update_state(_config(thread), {"answer": "owned"}),
}


def _config(thread: str) -> dict[str, dict[str, str]]:
    return {"configurable": {"thread_id": thread}}


@pytest.mark.parametrize("thread", TAKEN)
def test_a_question_under_such_an_id_is_refused_and_conversations_stay(home: Path, cli: Cli, thread: str) -> None:
    begin_two_conversations(cli)
    before = cli("conversations", "list", "--json").ok().out
    cli("ask", QUESTION, "-c", COLLECTION, "--thread-id", thread).refused("is not for questions", "Take another id")
    assert cli("conversations", "list", "--json").ok().out == before
    assert len(json.loads(before)) == 2


@pytest.mark.parametrize("thread", TAKEN)
def test_the_library_refuses_them_too(tmp_path: Path, thread: str) -> None:
    context = RagContext(reader=FakeLLM(lambda _: "the drum"), retriever=TableRetriever({}), judge=OracleJudge({}))
    settings = load_settings(home=tmp_path, checkpoints=f"sqlite:///{tmp_path / 'c.sqlite'}")
    with RagSession(context=context, settings=settings) as session, pytest.raises(SettingsError, match="not for quest"):
        session.ask(QUESTION, thread_id=thread)
    with build_judge_rag(checkpointer="memory:", context=context) as graph:
        for write in WRITING.values():
            with pytest.raises(SettingsError, match="not for questions"):
                write(graph, thread)
        assert graph.get_state(_config(thread)).created_at is None  # one of an older judgetree can be read
