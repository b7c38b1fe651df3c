"""A neighbourhood as text, picture, page, JSON and GraphML, also with names that could break them."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import networkx as nx
import pytest

from judgetree.graphs.neighbourhood.shown import ShownGraph
from judgetree.graphs.neighbourhood.words import PassageText, shown_phrases
from judgetree.modules.structure.neighbourhood import GraphEdge, GraphNode, Neighbourhood

HOSTILE = 'a "b"\\N <script>alert(1)</script>\n&\x07\x1b[2J ]]> \ud800 汉字' + "长" * 300


def shown(text: str) -> ShownGraph:
    places = (
        GraphNode(node=0, kind="passage", name=text, score=0.5, seed=0.5),
        GraphNode(node=1, kind="phrase", name=text, score=0.2, seed=0.0),
        GraphNode(node=2, kind="phrase", name="j r r tolkien", score=0.1, seed=0.5),
    )
    bonds = (GraphEdge(source=0, target=1, relation=""), GraphEdge(source=1, target=2, relation=text, passages=(text,)))
    found = Neighbourhood(query=text, kind="triples", places=places, bonds=bonds, left_out=7)
    return ShownGraph(neighbourhood=found, texts={text: PassageText(title=text, text=f"{text} J. R. R. Tolkien")})


@pytest.mark.parametrize("text", ["Bergen", HOSTILE, "", "\\"])
def test_every_form_holds_any_text(text: str) -> None:
    value = shown(text)
    svg = value.to_svg()
    ET.fromstring(svg)
    page = value.to_html()
    assert "<script>alert" not in page + svg
    assert page.count("<script") == 1
    assert "J. R. R. Tolkien" in value.to_text(width=4000)
    assert "7 more reached" in value.to_text()
    assert "\x1b" not in value.to_text() + page + svg
    read = nx.parse_graphml(value.to_graphml(), force_multigraph=True)
    assert (read.number_of_nodes(), read.number_of_edges()) == (3, 2)
    assert [each["kind"] for each in json.loads(value.to_json())["places"]] == ["passage", "phrase", "phrase"]
    assert "<iframe" in value._repr_html_()


@pytest.mark.parametrize(
    ("phrase", "text", "written"),
    [
        ("trouble maker film", "Trouble Maker (film) is old.", "Trouble Maker (film)"),
        ("ng man", "The king man met Ng Man.", "Ng Man"),
        ("一代宗师", "他导演了一代宗师。", "一代宗师"),
        ("up 2009", "Up (2009", "Up (2009"),
        ("anna berg", "(by Anna Berg)", "Anna Berg"),
        ("oslo", "Nowhere.", "oslo"),
    ],
)
def test_a_phrase_is_shown_whole_and_as_written(phrase: str, text: str, written: str) -> None:
    places = (GraphNode(node=1, kind="phrase", name=phrase, score=0.1, seed=0.0),)
    found = Neighbourhood(query="?", kind="entities", places=places, bonds=(), left_out=0)
    assert shown_phrases(found, {"c": PassageText(title="t", text=text)}) == {1: written}


def test_passages_stand_in_one_column_whichever_way_their_edges_go() -> None:
    places = tuple(
        GraphNode(node=node, kind="phrase" if node > 1 else "passage", name=str(node), score=0.1, seed=0.0)
        for node in range(3)
    )
    bonds = (GraphEdge(source=0, target=2, relation=""), GraphEdge(source=2, target=1, relation=""))
    found = Neighbourhood(query="?", kind="links", places=places, bonds=bonds, left_out=0)
    dot = ShownGraph(neighbourhood=found, texts={}).to_dot()
    assert [line.strip() for line in dot.splitlines() if " -- " in line] == ["n0 -- n2;", "n1 -- n2;"]


def test_what_is_connected_with_the_best_place_is_drawn_at_the_top_and_what_has_no_edge_at_the_bottom() -> None:
    scores = {3: 0.4, 0: 0.3, 1: 0.2, 2: 0.1}
    places = [
        GraphNode(node=node, kind="passage", name=f"c{node}", score=each, seed=0.1) for node, each in scores.items()
    ]
    places += [GraphNode(node=node, kind="phrase", name=f"p{node}", score=0.01, seed=0.0) for node in (4, 5)]
    bonds = (GraphEdge(source=0, target=4, relation=""), GraphEdge(source=1, target=5, relation=""))
    found = Neighbourhood(query="?", kind="links", places=tuple(places), bonds=bonds, left_out=0)
    svg = ET.fromstring(ShownGraph(neighbourhood=found, texts={}).to_svg())
    top = {
        node: min(float(point.split(",")[1]) for point in outline.attrib["points"].split())
        for node in scores
        for group in svg.iter("{http://www.w3.org/2000/svg}g")
        if group.get("id") == f"n{node}"
        for outline in [next(group.iter("{http://www.w3.org/2000/svg}polygon"))]
    }
    assert sorted(scores, key=lambda node: top[node]) == [0, 1, 3, 2]
