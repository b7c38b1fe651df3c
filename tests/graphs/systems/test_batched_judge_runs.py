"""The judge batched in a session: its tree, its picture, and a resume that pays nothing twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree import Limits, RagContext, build_judge_rag
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.modules.errors import ModelCallError
from judgetree.modules.judge.batched import BatchedJudge
from tests.graphs.fakes import TableRetriever, chunk
from tests.modules.model_endpoints import llm_at

ROOT, SUB = "Which oil does KS-1 need?", "Which oil does class Delta need?"
TABLE = {
    ROOT: [chunk("a", "KS-1 is class Delta."), chunk("n", "noise")],
    SUB: [chunk("b", "Delta needs Vellin."), chunk("m", "more noise")],
}


class Model:
    """Judges by words; its reader is down until told otherwise."""

    def __init__(self) -> None:
        self.reads = False

    def __call__(self, request: ReceivedRequest) -> ChatReply:
        if request.prompt.kind != "batch":
            return ChatReply(text="Vellin") if self.reads else ChatReply(text="down", status=400)
        query, shown = request.prompt.query, request.prompt.passage.split("\n")
        useful = {ROOT: ("KS-1 is class Delta.", 1, SUB), SUB: ("Delta needs Vellin.", 2, "")}[query]
        entries = [
            {
                "passage": number,
                "score": useful[1] if text == useful[0] else 0,
                "percent": 90 if text == useful[0] else 10,
                "next_query": useful[2] if text == useful[0] else "",
            }
            for number, text in enumerate((line for line in shown if line and line[0] != "["), start=1)
        ]
        return ChatReply(text=json.dumps({"reason": "r", "suffices": query == SUB, "passages": entries}))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as started:
        yield started


def test_a_resumed_question_pays_no_judge_call_twice(server: ScriptedServer, tmp_path: Path) -> None:
    server.responses = model = Model()
    llm = llm_at(server.base_url)
    context = RagContext(
        reader=llm, retriever=TableRetriever(TABLE), judge=BatchedJudge(llm), limits=Limits(max_rec_depth=1)
    )
    store = f"sqlite:///{tmp_path / 'threads.sqlite'}"
    thread = {"configurable": {"thread_id": "t"}}
    with build_judge_rag(context=context, checkpointer=store) as graph, pytest.raises(ModelCallError):
        graph.invoke(ROOT, thread)  # type: ignore[arg-type]
    assert server.requests["batch"] == 2
    model.reads = True
    with build_judge_rag(context=context, checkpointer=store) as graph:
        assert graph.invoke(ROOT, thread)["answer"] == "Vellin"  # type: ignore[arg-type]
        tree = SearchTree.from_history(graph, "t")
    assert server.requests["batch"] == 2, "judged once"
    assert [(node.query, node.set_suffices) for node in tree.query_nodes()] == [(ROOT, False), (SUB, True)]
    assert [(each.score, each.p_needed) for each in tree.chunk_nodes()] == [(1, 0.9), (2, 0.9), (0, 0.1), (0, 0.1)]
    assert "KS-1" in tree.to_svg()
