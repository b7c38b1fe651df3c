"""Pictures of a system's nodes and edges, as LangGraph draws them, without a network."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from langchain_core.runnables.graph import CurveStyle, Edge, Graph, MermaidDrawMethod, Node, NodeStyles

from ...modules.storage.atomic import write_atomic
from .boxes import FAINT_INK, FONT, NODE_STYLE, quoted
from .svg import render_png

_HEAD = f"""\
digraph system {{
  graph [bgcolor=white, pad=0.15, nodesep=0.3, ranksep=0.35, fontname="{FONT}", fontsize=9];
  {NODE_STYLE}
  edge [arrowsize=0.7, fontname="{FONT}", fontsize=9];"""
_NODE = 'shape=box, style="filled,rounded", fillcolor="#E4EEF8", color="#1F4E79"'
_END = f'shape=plain, style="", fontcolor="{FAINT_INK}"'


class SystemPicture(Graph):
    """LangChain's drawable graph of nodes and edges, whose PNG is drawn on this machine."""

    def draw_mermaid_png(
        self,
        *,
        curve_style: CurveStyle = CurveStyle.LINEAR,
        node_colors: NodeStyles | None = None,
        wrap_label_n_words: int = 9,
        output_file_path: str | None = None,
        draw_method: MermaidDrawMethod | None = None,
        **options: Any,
    ) -> bytes:
        """Return a PNG, drawn by Graphviz; the other arguments are for a ``draw_method`` of LangChain.

        LangChain's default, ``MermaidDrawMethod.API``, sends the graph to mermaid.ink, and only when asked for here.

        Raises:
            DependencyError: Neither ``dot`` nor ``graphviz-pure`` is installed.
        """
        if draw_method is not None:
            return super().draw_mermaid_png(
                curve_style=curve_style,
                node_colors=node_colors,
                wrap_label_n_words=wrap_label_n_words,
                output_file_path=output_file_path,
                draw_method=draw_method,
                **options,
            )
        picture = render_png(self.to_dot())
        if output_file_path is not None:
            write_atomic(Path(output_file_path), picture)
        return picture

    def to_dot(self) -> str:
        """Return Graphviz DOT text; edges that depend on a route are dashed, nodes of a subgraph are framed."""
        groups: dict[str, list[Node]] = defaultdict(list)
        for node in self.nodes.values():
            groups[node.id.rpartition(":")[0]].append(node)
        lines = [_HEAD]
        for number, (group, nodes) in enumerate(groups.items()):
            inside = [_box(node) for node in nodes]
            frame = [f"  subgraph cluster_{number} {{ label={quoted(group)};", *inside, "  }"]
            lines += frame if group else inside
        return "\n".join([*lines, *map(_arrow, self.edges), "}", ""])


def _box(node: Node) -> str:
    look = _END if node.name in ("__start__", "__end__") else _NODE
    return f"  {quoted(node.id)} [label={quoted(node.name.strip('_').rpartition(':')[2])}, {look}];"


def _arrow(edge: Edge) -> str:
    style = "dashed" if edge.conditional else "solid"
    label = f", label={quoted(str(edge.data))}" if edge.data is not None else ""
    return f"  {quoted(edge.source)} -> {quoted(edge.target)} [style={style}{label}];"
