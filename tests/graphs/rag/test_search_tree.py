"""Trees out of real checkpoints: a small LangGraph graph that recurses the way judgetree's own does."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send, interrupt

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.threads.checkpoints import Saver, open_checkpointer
from judgetree.graphs.threads.state import ChunkPatch, JsonScalar, RagState
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.calls.usage import CallRecord
from judgetree.modules.errors import LoadingError, UnknownThread
from tests.call_records import call_record

ROOT = "root"
CONFIG: RunnableConfig = {"configurable": {"thread_id": ROOT}}
Graph = CompiledStateGraph[RagState, None, RagState, RagState]
Hook = Callable[[str, str], None]
"""Called with thread id and node name before the node does anything."""


def call(thread_id: str, node: str, chunk_id: str = "") -> CallRecord:
    return call_record(f"{thread_id}-{node}-{chunk_id}", node=node, chunk_id=chunk_id)


def patch(chunk_id: str, **changes: JsonScalar) -> ChunkPatch:
    return ChunkPatch(chunk_id=chunk_id, changes=changes)


def go_on(thread_id: str, node: str) -> None:
    """The hook that lets every node run."""


def stop_at(thread_id: str, node: str, error: Exception | None = None) -> Hook:
    """Raises the error there, or leaves the run open, its finished siblings' results pending."""

    def hook(thread: str, name: str) -> None:
        if (thread, name) != (thread_id, node):
            return
        if error is not None:
            raise error
        interrupt("stop")

    return hook


def build_graph(saver: Saver, hook: Hook) -> Graph:
    """retrieve two chunks, judge them in parallel branches, ask a sub-question for chunk "b" down to depth 2."""

    def thread_of(config: RunnableConfig) -> str:
        return str(config["configurable"]["thread_id"])

    def retrieve(state: RagState, config: RunnableConfig) -> dict[str, object]:
        hook(thread_of(config), "retrieve")
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
        return {"similar_chunks": Overwrite(chunks), "fingerprint": {"judge": "oracle"}}

    def judge(state: dict[str, str], config: RunnableConfig) -> dict[str, object]:
        name, thread_id = state["name"], thread_of(config)
        hook(thread_id, f"judge {name}")
        verdict = {"verdict": "judged", "score": int(name == "b"), "next_query": f"sub of {state['query']}"}
        return {"similar_chunks": [patch(name, **verdict)], "usage": [call(thread_id, "judge", name)]}

    def plan(state: RagState, config: RunnableConfig) -> dict[str, object]:
        thread_id = thread_of(config)
        link = f"{thread_id}-b" if thread_id.count("-") < 2 else ""
        return {"similar_chunks": [patch("b", next_rag_thread_id=link)]}

    async def call_new_rag(state: RagState, config: RunnableConfig) -> dict[str, object]:
        chunk = state["similar_chunks"][1]
        link = chunk.metadata["next_rag_thread_id"]
        hook(thread_of(config), "call_new_rag")
        if not link:
            return {}
        child = await graph.ainvoke(
            {"query": chunk.metadata["next_query"]}, {"configurable": {"thread_id": link}}, durability="sync"
        )
        return {"similar_chunks": [patch("b", sub_answer=child["answer"])]}

    def generate(state: RagState, config: RunnableConfig) -> dict[str, object]:
        thread_id = thread_of(config)
        hook(thread_id, "generate")
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


def run_and_read(
    saver_name: str, folder: Path, hook: Hook, *, then: Callable[[Graph], Awaitable[object]] | None = None
) -> SearchTree:
    """Ask the root's question as far as ``hook`` lets it, do ``then``, and read the tree."""

    async def scenario(saver: Saver) -> SearchTree:
        graph = build_graph(saver, hook)
        try:
            await graph.ainvoke({"query": "谁?"}, CONFIG, durability="sync")
        except ValueError:
            assert hook is not go_on
        if then is not None:
            await then(graph)
        return await SearchTree.afrom_history(graph, ROOT)

    async def with_saver() -> SearchTree:
        if saver_name == "memory":
            return await scenario(InMemorySaver())
        async with open_checkpointer(f"sqlite:///{folder / 'checkpoints.sqlite'}") as saver:
            return await scenario(saver)

    return asyncio.run(with_saver())


@pytest.fixture(params=["memory", "sqlite"])
def saver_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_tree_of_a_finished_run_has_every_thread_and_cost(saver_name: str, tmp_path: Path) -> None:
    tree = run_and_read(saver_name, tmp_path, go_on)

    queries = list(tree.query_nodes())
    assert [node.thread_id for node in queries] == ["root", "root-b", "root-b-b"]
    assert [node.parent_thread_id for node in queries] == [None, "root", "root-b"]
    assert [node.depth for node in queries] == [0, 1, 2]
    assert [node.query for node in queries] == ["谁?", "sub of 谁?", "sub of sub of 谁?"]
    assert {(node.status, node.answer_status) for node in queries} == {("finished", "answered")}
    assert tree.root.answer == "answer of root"
    assert (tree.depth, tree.sub_runs, tree.budget_spent) == (2, 2, False)
    assert tree.usage == {"llm_calls": 9, "prompt_tokens": 90, "completion_tokens": 18, "seconds": 4.5}
    assert [record["call_id"] for record in queries[1].usage] == [
        "root-b-judge-a",
        "root-b-judge-b",
        "root-b-generate-",
    ]
    assert [chunk.text for chunk in tree.chunk_nodes()] == ["a 正文", "b 正文", "a 正文", "b 正文", "a 正文", "b 正文"]
    assert tree.verdict_counts == {"2": 0, "1": 3, "0": 3, "unknown": 0, "cancelled": 0, "pending": 0}
    assert tree.fingerprint == {"judge": "oracle"}


def test_chunk_node_tells_its_metadata(tmp_path: Path) -> None:
    first, second = run_and_read("memory", tmp_path, go_on).root.chunks

    assert (first.score, first.verdict_label, first.child) == (0, "0", None)
    assert (second.score, second.next_query, second.sub_answer) == (1, "sub of 谁?", "answer of root-b")
    assert (second.rank, second.retrieval_score, second.source) == (1, 0.9, "b.md")
    assert second.next_rag_thread_id == "root-b"
    assert second.child is not None
    assert second.child.thread_id == "root-b"


def test_times_are_those_of_the_first_and_newest_checkpoint(tmp_path: Path) -> None:
    tree = run_and_read("memory", tmp_path, go_on)

    times = [
        datetime.fromisoformat(time) for node in tree.query_nodes() for time in (node.started_at, node.ended_at) if time
    ]
    root_start, root_end, child_start, child_end = times[:4]
    assert root_start < child_start < child_end < root_end
    assert {time.utcoffset() for time in times} == {timedelta(0)}


def test_failed_thread_keeps_its_error_and_the_results_of_its_siblings(saver_name: str, tmp_path: Path) -> None:
    tree = run_and_read(saver_name, tmp_path, stop_at("root-b", "judge b", ValueError("boom")))

    failed = list(tree.query_nodes())[1]
    assert (failed.thread_id, failed.status, failed.error) == ("root-b", "failed", "ValueError('boom')")
    assert [chunk.verdict_label for chunk in failed.chunks] == ["0", "pending"]
    assert [record["chunk_id"] for record in failed.usage] == ["a"]
    assert tree.root.status == "failed"
    assert (tree.root.answer, tree.root.answer_status) == ("", None)


def test_open_thread_shows_verdicts_of_branches_that_are_done(saver_name: str, tmp_path: Path) -> None:
    tree = run_and_read(saver_name, tmp_path, stop_at(ROOT, "judge b"))

    assert (tree.root.status, tree.root.error, tree.sub_runs) == ("open", "", 0)
    assert [chunk.verdict for chunk in tree.root.chunks] == ["judged", "pending"]
    assert tree.usage["llm_calls"] == 1


def test_open_thread_has_its_query_before_anything_was_retrieved(saver_name: str, tmp_path: Path) -> None:
    root = run_and_read(saver_name, tmp_path, stop_at(ROOT, "retrieve")).root

    assert (root.query, root.status, root.chunks) == ("谁?", "open", ())


def test_linked_thread_without_checkpoint_is_an_open_query(saver_name: str, tmp_path: Path) -> None:
    tree = run_and_read(saver_name, tmp_path, stop_at(ROOT, "call_new_rag"))

    child = tree.root.chunks[1].child
    assert child == QueryNode(
        thread_id="root-b", parent_thread_id="root", depth=1, query="sub of 谁?", status="open", started_at=None
    )


def test_root_that_was_never_written_is_an_error(tmp_path: Path) -> None:
    graph = build_graph(InMemorySaver(), go_on)

    with pytest.raises(UnknownThread, match="No checkpoint knows the thread 'nobody'"):
        SearchTree.from_history(graph, "nobody")


def test_sync_and_async_readings_agree(tmp_path: Path) -> None:
    graph = build_graph(InMemorySaver(), go_on)
    asyncio.run(graph.ainvoke({"query": "q"}, CONFIG))

    assert SearchTree.from_history(graph, ROOT) == asyncio.run(SearchTree.afrom_history(graph, ROOT))


def test_fork_of_the_history_leaves_old_sub_runs_behind(saver_name: str, tmp_path: Path) -> None:
    async def fork(graph: Graph) -> None:
        planned = [state async for state in graph.aget_state_history(CONFIG) if state.next == ("call_new_rag",)]
        change = {"similar_chunks": [patch("b", next_rag_thread_id="other", next_query="other question")]}
        await graph.aupdate_state(planned[0].config, change, as_node="plan")

    tree = run_and_read(saver_name, tmp_path, go_on, then=fork)

    assert [(node.thread_id, node.query, node.status) for node in tree.query_nodes()] == [
        ("root", "谁?", "open"),
        ("other", "other question", "open"),
    ]


def test_link_that_closes_a_cycle_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def link_back(graph: Graph) -> None:
        child: RunnableConfig = {"configurable": {"thread_id": "root-b"}}
        change = {"similar_chunks": [patch("a", next_rag_thread_id=ROOT)]}
        await graph.aupdate_state(child, change, as_node="generate")

    with caplog.at_level(logging.WARNING, logger="judgetree.graphs.tree.history"):
        tree = run_and_read("memory", tmp_path, go_on, then=link_back)

    assert [node.thread_id for node in tree.query_nodes()] == ["root", "root-b", "root-b-b"]
    assert "root-b links to root, which the tree already holds" in caplog.text


def test_metadata_that_json_cannot_say_is_made_sayable(tmp_path: Path) -> None:
    async def add_odd(graph: Graph) -> None:
        odd = {"nan": math.nan, "list": [1, "二"], "whole": 3, "flag": True}
        await graph.aupdate_state(CONFIG, {"similar_chunks": [{"chunk_id": "a", "changes": odd}]}, as_node="generate")

    tree = run_and_read("memory", tmp_path, go_on, then=add_odd)

    metadata = tree.root.chunks[0].metadata
    assert {key: metadata[key] for key in ("nan", "list", "whole", "flag")} == {
        "nan": None,
        "list": "[1, '二']",
        "whole": 3,
        "flag": True,
    }
    assert SearchTree.from_json(tree.to_json()) == tree


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
RECORDS = st.builds(
    call_record,
    st.text(),
    kind=st.sampled_from(["chat", "embedding", "rerank"]),
    model=st.text(),
    prompt_tokens=st.integers(0),
    seconds=st.floats(0, 1e6),
    cached=st.booleans(),
    error=st.text(),
)


def queries(chunks: st.SearchStrategy[ChunkNode]) -> st.SearchStrategy[QueryNode]:
    return st.builds(
        QueryNode,
        thread_id=st.uuids().map(str),
        query=st.text(),
        parent_thread_id=st.none() | st.text(),
        depth=st.integers(0, 9),
        answer=st.text(),
        status=st.sampled_from(["finished", "failed", "open"]),
        answer_status=st.sampled_from([None, "answered", "refused", "failed"]),
        error=st.text(),
        evidence=st.text(),
        usage=st.lists(RECORDS, max_size=2).map(tuple),
        started_at=st.none() | st.text(),
        ended_at=st.none() | st.text(),
        chunks=st.lists(chunks, max_size=3).map(tuple),
    )


def chunks(children: st.SearchStrategy[QueryNode | None]) -> st.SearchStrategy[ChunkNode]:
    return st.builds(
        ChunkNode,
        chunk_id=st.uuids().map(str),
        text=st.text(),
        metadata=st.dictionaries(st.text(), SCALARS, max_size=4),
        sub_runs=st.lists(children, max_size=2).map(lambda each: tuple(filter(None, each))),
    )


TREES = st.builds(
    SearchTree,
    root=st.recursive(queries(chunks(st.none())), lambda below: queries(chunks(st.none() | below)), max_leaves=6),
    fingerprint=st.dictionaries(st.text(), st.text(), max_size=3),
)
any_tree = settings(max_examples=60)


@any_tree
@given(TREES, st.sampled_from([None, 2]))
def test_json_gives_back_the_same_tree(tree: SearchTree, indent: int | None) -> None:
    again = SearchTree.from_json(tree.to_json(indent=indent))

    assert again == tree
    assert again.to_json() == tree.to_json()


@any_tree
@given(TREES)
def test_graphml_holds_every_node_whatever_the_text(tree: SearchTree) -> None:
    graph = nx.parse_graphml(tree.to_graphml())

    assert graph.number_of_nodes() == sum(1 + len(node.chunks) for node in tree.query_nodes())
    assert graph.number_of_edges() == graph.number_of_nodes() - 1
    kinds = [kind for _, kind in graph.nodes(data="kind")]
    assert kinds.count("query") == tree.sub_runs + 1


def test_networkx_graph_leads_from_query_over_chunk_to_sub_question(tmp_path: Path) -> None:
    graph = run_and_read("memory", tmp_path, go_on).to_networkx()

    assert nx.shortest_path(graph, "root", "root-b") == ["root", "root/b", "root-b"]
    assert graph.nodes["root/b"]["score"] == 1
    assert graph.nodes["root-b"]["llm_calls"] == 3
    assert nx.is_arborescence(graph)


def test_a_table_has_a_row_for_each_chunk_of_each_query() -> None:
    below = QueryNode(thread_id="b", query="Why?", depth=1, chunks=(ChunkNode(chunk_id="d", text="Low.", metadata={}),))
    metadata = {"source": "a.md", "rank": 0, "score": 1, "verdict": "judged", "shown_place": 0, "next_query": "Why?"}
    chunk = ChunkNode(chunk_id="c", text="High.", metadata=metadata, sub_runs=(below,))
    frame = SearchTree(root=QueryNode(thread_id="t", query="q", chunks=(chunk,))).to_frame()
    assert frame[["query", "depth", "source", "verdict", "shown", "sub_question"]].values.tolist()[0] == [
        *("q", 0, "a.md", "1", True, "Why?")
    ]
    assert list(frame["chunk_id"]) == ["c", "d"]
    assert frame["rank"].iloc[0] == 1, "as drawings count"
    assert list(SearchTree(root=QueryNode(thread_id="t", query="q")).to_frame().columns) == list(frame.columns)


def test_networkx_graph_takes_any_metadata_key() -> None:
    chunk = ChunkNode(chunk_id="c", text="t", metadata={"node_for_adding": 1, "kind": "mine"})
    graph = SearchTree(root=QueryNode(thread_id="t", query="q", chunks=(chunk,))).to_networkx()

    assert graph.nodes["t/c"] == {
        "node_for_adding": 1,
        "kind": "chunk",
        "thread_id": "t",
        "chunk_id": "c",
        "text": "t",
        "verdict": "pending",
    }


GOOD = json.loads(SearchTree(root=QueryNode(thread_id="t", query="q")).to_json())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON"),
        ("[1]", "the JSON holds no object"),
        ('{"root": {}}', "has no format"),
        (json.dumps(GOOD | {"format": "judgetree-search-tree/99"}), "tree/99'; this judgetree reads 'judgetree-s"),
    ],
)
def test_foreign_document_is_refused(text: str, message: str) -> None:
    with pytest.raises(LoadingError, match=message):
        SearchTree.from_json(text)


def chunk(**metadata: JsonScalar) -> ChunkNode:
    return ChunkNode(chunk_id="c", text="t", metadata=metadata)


@pytest.mark.parametrize(
    ("metadata", "label"),
    [
        ({}, "pending"),
        ({"verdict": "judged", "score": 2}, "2"),
        ({"verdict": "judged", "score": 1}, "1"),
        ({"verdict": "judged", "score": 0}, "0"),
        ({"verdict": "judged", "score": None}, "unknown"),
        ({"verdict": "judged", "score": 7}, "unknown"),
        ({"verdict": "unknown", "score": 1}, "unknown"),
        ({"verdict": "cancelled"}, "cancelled"),
        ({"verdict": "nonsense"}, "pending"),
    ],
)
def test_verdict_label_is_the_score_or_why_there_is_none(metadata: dict[str, JsonScalar], label: str) -> None:
    assert chunk(**metadata).verdict_label == label


@pytest.mark.parametrize(
    ("metadata", "spent"),
    [
        ({"verdict": "judged", "score": 1}, False),
        ({"verdict": "cancelled"}, True),
        ({"budget_spent": True, "sub_run_error": "not asked"}, True),
        ({"sub_run_error": "ModelCallError: 402, the budget of this key is used up"}, False),
    ],
)
def test_budget_spent_is_a_fact_of_a_chunk_whatever_its_error_says(
    metadata: dict[str, JsonScalar], spent: bool
) -> None:
    tree = SearchTree(root=QueryNode(thread_id="t", query="q", chunks=(chunk(**metadata),)))

    assert tree.budget_spent is spent
