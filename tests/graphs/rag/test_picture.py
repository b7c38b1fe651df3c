"""A system's nodes and edges are drawn without a network, a store or services."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.runnables.graph import MermaidDrawMethod
from langgraph.graph import END, START, StateGraph

from judgetree.graphs.drawing import svg
from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.systems import nodes
from judgetree.graphs.systems.registry import SYSTEMS, find_system
from judgetree.graphs.threads.context import RunContext
from judgetree.graphs.threads.state import RagState

PNG = b"\x89PNG\r\n\x1a\n"


def build_nested(**options: object) -> RagGraph:
    """A system of one's own with a graph as one of its nodes."""
    inner = StateGraph(RagState, context_schema=RunContext)
    inner.add_node("find it", nodes.retrieve)
    inner.add_edge(START, "find it")
    inner.add_edge("find it", END)
    builder = StateGraph(RagState, context_schema=RunContext)
    builder.add_node("search", inner.compile())
    builder.add_node("generate", nodes.generate)
    builder.add_edge(START, "search")
    builder.add_edge("search", "generate")
    return RagGraph(builder, system="nested", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("system", [*SYSTEMS, build_nested])
def test_every_system_is_drawn_before_its_store_is_opened(system: object, tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    graph = find_system(system).build(checkpointer=f"sqlite:///{file}")  # type: ignore[arg-type]
    drawn = graph.get_graph()
    assert drawn.draw_mermaid().count("generate(generate)") == 1
    assert drawn.draw_mermaid_png(output_file_path=str(tmp_path / "graph.png")).startswith(PNG)
    assert (tmp_path / "graph.png").read_bytes().startswith(PNG)
    assert not file.exists()


def test_xray_shows_the_inside_of_a_node_that_is_a_graph() -> None:
    graph = find_system(build_nested).build()
    assert "find it" not in graph.get_graph().draw_mermaid()
    inside = graph.get_graph(xray=True)
    assert "subgraph search" in inside.draw_mermaid()
    assert 'label="search"' in inside.to_dot()  # type: ignore[attr-defined]
    assert inside.draw_mermaid_png().startswith(PNG)


def test_a_notebook_shows_the_picture_or_else_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = find_system("judge").build()
    assert graph._repr_mimebundle_()["image/png"].startswith(PNG)  # type: ignore[attr-defined]
    monkeypatch.setattr(svg, "find_renderer", lambda: None)
    assert graph._repr_mimebundle_() == {"text/plain": "RagGraph('judge')"}


def test_langchains_own_methods_are_there_on_request() -> None:
    with pytest.raises(ImportError, match="pyppeteer"):
        find_system("naive").build().get_graph().draw_mermaid_png(draw_method=MermaidDrawMethod.PYPPETEER)
