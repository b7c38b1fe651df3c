"""A system as a plain compiled graph, which runs on the loop and with the checkpoints of its caller."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.systems.registry import SYSTEMS
from judgetree.modules.errors import SettingsError
from tests.graphs.fakes import FakeLLM, thread
from tests.graphs.rag.test_interrupts import AskingJudge, asked, context_with
from tests.graphs.rag.test_nested import WITHIN, outer_graph, places
from tests.graphs.two_steps import ROOT, context_of


def served(context: Any, saver: Any = None) -> Any:
    """The graph as the server takes it: a copy with its own checkpoints."""
    graph = build_judge_rag(context=context).as_state_graph()
    assert isinstance(graph, CompiledStateGraph)
    return graph.copy(update={"checkpointer": saver or InMemorySaver()})


def run(graph: Any, given: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, thread("t")))


def test_it_runs_on_the_callers_loop_with_the_callers_checkpoints() -> None:
    threads: set[str] = set()
    reader = FakeLLM(lambda messages: threads.add(threading.current_thread().name) or "Vellin")
    saver = InMemorySaver()
    final = run(served(context_of(reader), saver), {"query": ROOT})
    assert (final["answer"], final["status"]) == ("Vellin", "answered")
    assert final["similar_chunks"][0].metadata["sub_answer"] == "Vellin"
    assert threads == {threading.current_thread().name}
    spaces = {saved.config["configurable"]["checkpoint_ns"].count("|") for saved in saver.list(thread("t"))}
    assert spaces == {0, 1}, "the graph and its sub-run, all on one thread"
    assert len(reader.calls) == 2


def test_an_interrupt_of_a_sub_run_is_answered_and_no_finished_step_is_run_again() -> None:
    judge = AskingJudge("b")
    graph = served(context_with(judge))
    assert asked(run(graph, {"query": ROOT})) == ["Judge b?"]
    assert run(graph, Command(resume="yes"))["answer"] == "Vellin"
    assert sorted(judge.judged) == ["a", "b", "m", "n"]


def test_a_second_question_of_a_thread_begins_anew() -> None:
    graph = served(context_of(FakeLLM(lambda messages: "Vellin")))
    finals = [run(graph, {"query": query}) for query in (ROOT, "Another?")]
    assert [len(final["usage"]) for final in finals] == [1, 1]
    assert [len(final["similar_chunks"]) for final in finals] == [1, 0]


def test_its_steps_are_streamed_as_those_of_subgraphs() -> None:
    async def streamed(graph: Any) -> list[Any]:
        options: Any = {"stream_mode": "updates", "subgraphs": True}
        return [item async for item in graph.astream({"query": ROOT}, thread("t"), **options)]

    context = context_of(FakeLLM(lambda messages: "Vellin"))
    inside = [("/".join(filter(None, ("rag", place))), node) for place, node in WITHIN]
    assert places(asyncio.run(streamed(served(context)))) == [*inside, ("", "rag")]
    nested = outer_graph(build_judge_rag(context=context).as_state_graph(), InMemorySaver())
    assert places(asyncio.run(streamed(nested)))[-1] == ("", "shout")


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_can_be_served(system: str) -> None:
    context = context_of(FakeLLM(lambda messages: "Vellin"))
    graph = SYSTEMS[system].build(context=context).as_state_graph()
    assert run(graph.copy(update={"checkpointer": InMemorySaver()}), {"query": ROOT})["answer"]
    assert "generate" in graph.get_graph(xray=True).draw_mermaid()


def test_a_graph_without_services_cannot_be_served() -> None:
    with pytest.raises(SettingsError, match="No services"):
        build_judge_rag().as_state_graph()


def test_the_example_names_functions_that_exist() -> None:
    folder = Path(__file__).parents[3] / "examples" / "langgraph"
    named = json.loads((folder / "langgraph.json").read_text(encoding="utf-8"))["graphs"].values()
    namespace: dict[str, Any] = {}
    exec(compile((folder / "graphs.py").read_text(encoding="utf-8"), "graphs.py", "exec"), namespace)
    assert all(callable(namespace[path.partition(":")[2]]) for path in named)
