"""An open sub-thread of a run that was cut off goes on where it stopped."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from langchain_core.documents import Document

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.contract import Verdict
from judgetree.modules.judge.oracle import OracleJudge
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk
from tests.graphs.two_steps import GOLD, ROOT, SUB, TABLE

WITH_NOISE = {**TABLE, SUB: [*TABLE[SUB], chunk("n", "noise")]}


class Stopping(OracleJudge):
    """The oracle, which hangs on one chunk until it is mended."""

    def __init__(self, hangs_on: str) -> None:
        super().__init__(GOLD)
        self.hangs_on = hangs_on
        self.hanging = threading.Event()
        self.judged: list[str] = []

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        if chunk.metadata["chunk_id"] == self.hangs_on:
            self.hanging.set()
            await asyncio.Event().wait()
        self.judged.append(chunk.metadata["chunk_id"])
        return await super().judge(query, chunk, meter=meter, expand=expand)


@pytest.mark.parametrize("hangs_on", ["b", "n"])
def test_a_cancelled_sub_run_is_finished_by_a_resume(tmp_path: Path, hangs_on: str) -> None:
    judge = Stopping(hangs_on)
    reader = FakeLLM(lambda messages: "Vellin")
    context = RagContext(reader=reader, retriever=TableRetriever(WITH_NOISE), judge=judge)
    graph = build_judge_rag(checkpointer=f"sqlite:///{tmp_path / 'c.sqlite'}", context=context)
    config = {"configurable": {"thread_id": "t"}}

    async def cut_off() -> None:
        run = asyncio.create_task(graph.ainvoke(ROOT, config))  # type: ignore[arg-type]
        await asyncio.to_thread(judge.hanging.wait)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(cut_off())
    assert [node.status for node in SearchTree.from_history(graph, "t").query_nodes()] == ["open", "open"]
    judge.hangs_on = ""
    final = graph.invoke(None, config)  # type: ignore[arg-type]
    assert final["similar_chunks"][0].metadata["sub_run_error"] == ""
    assert final["similar_chunks"][0].metadata["sub_answer"] == "Vellin"
    assert sorted(judge.judged) == ["a", "b", "n"], "no verdict is paid for twice"
    graph.close()


DIES = """
import os, sys
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.systems.judge_rag import build_judge_rag
from tests.graphs.fakes import FakeLLM, TableRetriever
from tests.graphs.rag.test_sub_thread_resume import Stopping
from tests.graphs.two_steps import ROOT, SUB, TABLE

def reply(messages):
    if SUB in messages[1][1].splitlines()[0]:
        os._exit(9)
    return "Vellin"

context = RagContext(reader=FakeLLM(reply), retriever=TableRetriever(TABLE), judge=Stopping(""))
build_judge_rag(checkpointer=sys.argv[1], context=context).invoke(ROOT, {"configurable": {"thread_id": "t"}})
"""


@pytest.mark.slow
def test_a_process_that_dies_between_a_step_and_its_checkpoint_is_resumed(tmp_path: Path) -> None:
    """There every task of the newest checkpoint has its result, and LangGraph names none as next."""
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    repo = Path(__file__).parents[3]
    died = subprocess.run([sys.executable, "-c", DIES, url], cwd=repo, capture_output=True, text=True, check=False)
    assert died.returncode == 9, died.stderr
    reader = FakeLLM(lambda messages: "Vellin")
    context = RagContext(reader=reader, retriever=TableRetriever(TABLE), judge=Stopping(""))
    with build_judge_rag(checkpointer=url, context=context) as graph:
        assert SearchTree.from_history(graph, "t").root.status == "open"
        final = graph.invoke(None, {"configurable": {"thread_id": "t"}})
    assert (final["answer"], final["similar_chunks"][0].metadata["sub_answer"]) == ("Vellin", "Vellin")
    assert len(reader.calls) == 2
