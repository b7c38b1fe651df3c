"""A thread that was named just now is not looked for in the store."""

from __future__ import annotations

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.snapshots import NewThreadId
from judgetree.modules.judge.oracle import OracleJudge
from tests.graphs.fakes import FakeLLM, TableRetriever, thread
from tests.graphs.two_steps import GOLD, ROOT, TABLE


class CountingSaver(InMemorySaver):
    """Keeps the ids of the threads that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        self.read.append(str(config["configurable"]["thread_id"]))
        return await super().aget_tuple(config)


@pytest.mark.parametrize(("thread_id", "reads"), [(NewThreadId("t"), 1), ("t", 2)])
def test_a_search_reads_each_of_its_threads_once_if_it_is_new(thread_id: str, reads: int) -> None:
    reader = FakeLLM(lambda messages: "Vellin")
    context = RagContext(reader=reader, retriever=TableRetriever(TABLE), judge=OracleJudge(GOLD))
    saver = CountingSaver()
    graph = build_judge_rag(checkpointer=saver, context=context)
    graph.invoke(ROOT, thread(thread_id))
    threads = [node.thread_id for node in SearchTree.from_history(graph, "t").query_nodes()]
    assert len(threads) == 2
    assert [saver.read.count(each) for each in threads] == [reads, reads], "LangGraph reads each once"
    graph.invoke(ROOT, thread("t"))
    assert len(reader.calls) == 2, "known from then on"
    graph.close()
