"""Trees out of real checkpoints: a small LangGraph graph that recurses the way judgetree's own does."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated

import pytest
from judgetree.graphs.search_tree import SearchTree
from judgetree.graphs.state import ChunkPatch, RagState
from judgetree.modules.errors import UnknownThread
from judgetree.modules.usage import CallRecord
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite, Send, StateSnapshot

ROOT = "root"
Break = Callable[[str, str], None]
"""Called with thread id and node name; raises to end the run there."""


def call(thread_id: str, node: str, chunk_id: str = "") -> CallRecord:
    return CallRecord(
        call_id=f"{thread_id}-{node}-{chunk_id}",
        kind="chat",
        node=node,
        chunk_id=chunk_id,
        model="m",
        prompt_tokens=10,
        completion_tokens=2,
        seconds=0.5,
        attempts=1,
        cached=False,
        error="",
    )


def patch(chunk_id: str, **changes: str | int | float | None) -> ChunkPatch:
    return ChunkPatch(chunk_id=chunk_id, changes=dict(changes))


class Killed(BaseException):
    """Ends a run as a kill would: no node handles it, and no error is written for it."""


def build(saver: InMemorySaver | AsyncSqliteSaver, break_at: Break = lambda thread, node: None):
    """retrieve two chunks, judge them in parallel branches, ask a sub-question for chunk "b" down to depth 2."""

    def thread_of(config: RunnableConfig) -> str:
        return str(config["configurable"]["thread_id"])

    def retrieve(state: RagState, config: RunnableConfig) -> dict[str, object]:
        break_at(thread_of(config), "retrieve")
        chunks = [
            Document(
                page_content=f"{name} 正文",
                metadata={
                    "chunk_id": name,
                    "rank": rank,
                    "retrieval_score": 1.0 - rank / 10,
                    "source": f"{name}.md",
                    "next_rag_thread_id": "",
                },
            )
            for rank, name in enumerate("ab")
        ]
        return {"similar_chunks": Overwrite(chunks)}

    def judge(state: dict[str, str], config: RunnableConfig) -> dict[str, object]:
        name, thread_id = state["name"], thread_of(config)
        break_at(thread_id, f"judge {name}")
        verdict = {"verdict": "judged", "score": int(name == "b"), "next_query": f"sub of {state['query']}"}
        return {"similar_chunks": [patch(name, **verdict)], "usage": [call(thread_id, "judge", name)]}

    def plan(state: RagState, config: RunnableConfig) -> dict[str, object]:
        thread_id = thread_of(config)
        link = f"{thread_id}-b" if thread_id.count("-") < 2 else ""
        return {"similar_chunks": [patch("b", next_rag_thread_id=link)]}

    async def call_new_rag(state: RagState, config: RunnableConfig) -> dict[str, object]:
        chunk = state["similar_chunks"][1]
        link = chunk.metadata["next_rag_thread_id"]
        break_at(thread_of(config), "call_new_rag")
        if not link:
            return {}
        child = await graph.ainvoke(
            {"query": chunk.metadata["next_query"]}, {"configurable": {"thread_id": link}}, durability="sync"
        )
        return {"similar_chunks": [patch("b", sub_answer=child["answer"])]}

    def generate(state: RagState, config: RunnableConfig) -> dict[str, object]:
        thread_id = thread_of(config)
        break_at(thread_id, "generate")
        return {"answer": f"answer of {thread_id}", "status": "answered", "usage": [call(thread_id, "generate")]}

    def fan_out(state: RagState) -> list[Send]:
        return [Send("judge", {"name": name, "query": state["query"]}) for name in "ab"]

    builder = StateGraph(RagState)
    for node in (retrieve, judge, plan, call_new_rag, generate):
        builder.add_node(node)
    builder.add_edge(START, "retrieve")
    builder.add_conditional_edges("retrieve", fan_out, ["judge"])
    builder.add_edge("judge", "plan")
    builder.add_edge("plan", "call_new_rag")
    builder.add_edge("call_new_rag", "generate")
    builder.add_edge("generate", END)
    graph = builder.compile(checkpointer=saver)
    return graph


def break_on(thread_id: str, node: str, error: BaseException) -> Break:
    def break_at(thread: str, name: str) -> None:
        if (thread, name) == (thread_id, node):
            raise error

    return break_at


CONFIG: RunnableConfig = {"configurable": {"thread_id": ROOT}}


@pytest.mark.parametrize("err", [None, ValueError("boom"), Killed("x")])
@pytest.mark.parametrize("where", [("root", "judge b"), ("root-b", "judge b"), ("root-b", "retrieve"), ("root", "call_new_rag"), ("root", "retrieve")])
@pytest.mark.asyncio
async def test_try(tmp_path, err, where):
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        graph = build(saver, break_on(*where, err) if err else lambda t, n: None)
        try:
            await graph.ainvoke({"query": "q"}, CONFIG, durability="sync")
        except BaseException as e:
            print(repr(e))
        tree = await SearchTree.afrom_history(graph, ROOT)
        print(where, err); print(tree)
        for n in tree.query_nodes(): print(n.thread_id, n.status, n.error, n.started_at, n.ended_at)
