"""A graph of ours as a node of another graph, with and without that graph's checkpoints."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from judgetree.app.scripted.server import ScriptedServer
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.systems.naive_rag import build_naive_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.oracle import OracleJudge
from judgetree.modules.retriever.own import LangChainRetriever, create_own_retriever
from judgetree.modules.settings import Settings
from tests.graphs.fakes import FakeLLM, TableRetriever, thread
from tests.graphs.rag.test_interrupts import AskingJudge, asked, build_confirmed, context_with
from tests.graphs.two_steps import GOLD, ROOT, SUB, TABLE, context_of
from tests.modules.model_endpoints import as_new, llm_at


class OuterState(TypedDict, total=False):
    query: str
    answer: str
    rag_thread_id: str
    usage: list[Any]
    said: str


def shout(state: OuterState) -> OuterState:
    return {"said": state["answer"].upper()}


def outer_graph(rag: Any, saver: Any = None) -> Any:
    builder = StateGraph(OuterState)
    builder.add_node("rag", rag)
    builder.add_node("shout", shout)
    for edge in ((START, "rag"), ("rag", "shout"), ("shout", END)):
        builder.add_edge(*edge)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("saver", [None, InMemorySaver()])
def test_it_answers_as_a_node_and_its_tree_is_found(reader: FakeLLM, saver: Any, is_async: bool) -> None:
    rag = build_judge_rag(context=context_of(reader))
    graph = outer_graph(rag, saver)
    config = thread("outer") if saver else {}
    final = asyncio.run(graph.ainvoke({"query": ROOT}, config)) if is_async else graph.invoke({"query": ROOT}, config)
    assert final["said"] == "VELLIN"
    tree = SearchTree.from_history(rag, final["rag_thread_id"])
    assert [node.query for node in tree.query_nodes()] == [ROOT, SUB]
    assert [each.thread_id for each in rag.list_threads()] == [final["rag_thread_id"]]
    assert len(final["usage"]) == 1, "its own call; those of sub-runs are in the tree"


def test_a_node_that_calls_the_graph_itself_is_the_same(reader: FakeLLM) -> None:
    rag = build_judge_rag(context=context_of(reader))

    async def node(state: OuterState, config: RunnableConfig) -> OuterState:
        final = await rag.ainvoke(state["query"], config)
        return {"answer": final["answer"], "rag_thread_id": final["rag_thread_id"]}  # type: ignore[typeddict-item]

    final = asyncio.run(outer_graph(node, InMemorySaver()).ainvoke({"query": ROOT}, thread("outer")))
    assert SearchTree.from_history(rag, final["rag_thread_id"]).root.answer == "Vellin"


def test_each_task_has_a_thread_and_starts_without_earlier_results(reader: FakeLLM) -> None:
    rag = build_judge_rag(context=context_of(reader))
    graph = outer_graph(rag, InMemorySaver())
    finals = [graph.invoke({"query": query}, thread("outer")) for query in (ROOT, SUB)]
    assert len({each["rag_thread_id"] for each in finals}) == 2
    assert [len(each["usage"]) for each in finals] == [1, 1]


@pytest.mark.parametrize("is_async", [False, True])
def test_an_interrupt_below_is_answered_through_the_outer_graph(is_async: bool) -> None:
    judge = AskingJudge("b")
    graph = outer_graph(build_judge_rag(context=context_with(judge)), InMemorySaver())

    def run(given: Any) -> Any:
        config = thread("outer")
        return asyncio.run(graph.ainvoke(given, config)) if is_async else graph.invoke(given, config)

    assert asked(run({"query": ROOT})) == ["Judge b?"]
    assert run(Command(resume="yes"))["said"] == "VELLIN"
    assert sorted(judge.judged) == ["a", "b", "m", "n"]


def test_answers_reach_the_interrupts_that_they_are_for() -> None:
    graph = outer_graph(build_judge_rag(context=context_with(AskingJudge("a", "n", "b"))), InMemorySaver())
    state = graph.invoke({"query": ROOT}, thread("outer"))
    answers = {each.id: "yes" if "a?" in each.value else "no" for each in state["__interrupt__"]}
    assert asked(graph.invoke(Command(resume=answers), thread("outer"))) == ["Judge b?"]
    assert graph.invoke(Command(resume="yes"), thread("outer"))["said"] == "VELLIN"
    twice = outer_graph(build_confirmed(context=context_with(AskingJudge())), InMemorySaver())
    twice.invoke({"query": ROOT}, thread("outer"))
    assert asked(twice.invoke(Command(resume="first"), thread("outer"))) == ["Sure?"]
    assert twice.invoke(Command(resume="second"), thread("outer"))["said"] == "VELLIN"


# --- streams ---


def places(items: list[Any]) -> list[tuple[str, str]]:
    """The nodes of each item's namespace, and the node that the item is an update of."""
    return [("/".join(each.partition(":")[0] for each in place), *update) for place, update in items]


WITHIN = [
    ("", "retrieve"),
    ("", "judge"),
    ("", "plan_sub_runs"),
    ("call_new_rag", "retrieve"),
    ("call_new_rag", "judge"),
    ("call_new_rag", "plan_sub_runs"),
    ("call_new_rag", "augment"),
    ("call_new_rag", "generate"),
    ("", "call_new_rag"),
    ("", "augment"),
    ("", "generate"),
]


def test_subgraphs_gives_the_sub_runs_under_the_node_that_asked(reader: FakeLLM) -> None:
    rag = build_judge_rag(context=context_of(reader))
    assert places(list(rag.stream(ROOT, stream_mode="updates", subgraphs=True))) == WITHIN

    async def streamed() -> list[Any]:
        return [item async for item in rag.astream(ROOT, stream_mode="updates", subgraphs=True)]

    assert places(asyncio.run(streamed())) == WITHIN


@pytest.mark.parametrize("is_async", [False, True])
def test_subgraphs_of_an_outer_graph_gives_them_too(reader: FakeLLM, is_async: bool) -> None:
    graph = outer_graph(build_judge_rag(context=context_of(reader)))

    async def streamed() -> list[Any]:
        return [item async for item in graph.astream({"query": ROOT}, stream_mode="updates", subgraphs=True)]

    items = (
        asyncio.run(streamed()) if is_async else graph.stream({"query": ROOT}, stream_mode="updates", subgraphs=True)
    )
    inside = [("/".join(filter(None, ("rag", place))), node) for place, node in WITHIN]
    assert places(list(items)) == [*inside, ("", "rag"), ("", "shout")]


def test_without_subgraphs_an_outer_stream_has_its_own_items_alone(reader: FakeLLM) -> None:
    graph = outer_graph(build_judge_rag(context=context_of(reader)))
    assert [[*each] for each in graph.stream({"query": ROOT}, stream_mode="updates")] == [["rag"], ["shout"]]


# --- callbacks ---


class Ears(BaseCallbackHandler):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, object]] = []

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.heard.append((kwargs["name"], query))

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.heard.append(("end", [each.page_content for each in documents]))

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.heard.append(("error", type(error).__name__))

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.heard.append(("chat", len(messages[0])))


class Shelf(BaseRetriever):
    """A retriever of LangChain with one document."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(page_content=query.upper())]


@pytest.mark.parametrize("nested", [False, True])
def test_callbacks_hear_of_each_search_and_model_call_once(nested: bool) -> None:
    ears = Ears()
    with ScriptedServer() as server:
        llm = llm_at(as_new(server).base_url)
        context = RagContext(reader=llm, retriever=TableRetriever(TABLE), judge=OracleJudge(GOLD))
        rag = build_judge_rag(context=context)
        graph = outer_graph(rag) if nested else rag
        graph.invoke({"query": ROOT}, {"callbacks": [ears]})
    found = [("TableRetriever", ROOT), ("end", ["KS-1 is class Delta."])]
    below = [("TableRetriever", SUB), ("end", ["Delta needs Vellin."])]
    assert ears.heard == [*found, *below, ("chat", 2), ("chat", 2)]


def test_a_retriever_of_langchain_is_heard_once(reader: FakeLLM) -> None:
    ears = Ears()
    for given in (LangChainRetriever(Shelf()), create_own_retriever(Shelf(), index=None, topk=3, settings=Settings())):
        ears.heard.clear()
        context = RagContext(reader=reader, retriever=given)
        build_naive_rag(context=context).invoke("oil", {"callbacks": [ears]})
        assert ears.heard == [("Shelf", "oil"), ("end", ["OIL"])]


class Broken(TableRetriever):
    """A retriever that fails."""

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        raise OSError("no disk")


def test_a_search_that_fails_is_heard(reader: FakeLLM) -> None:
    ears = Ears()
    graph = build_naive_rag(context=RagContext(reader=reader, retriever=Broken(TABLE)))
    with pytest.raises(OSError, match="no disk"):
        graph.invoke("oil", {"callbacks": [ears]})
    assert ears.heard == [("Broken", "oil"), ("error", "OSError")]
