"""The picture of a conversation: what stands in its boxes, what joins them, and that no text breaks it."""

from __future__ import annotations

import os
import re
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.modules.storage.texts import printable
from tests.graphs.conversation.drawing.talks import ATTACK, conversation, long_talk
from tests.svg_boxes import SVG, boxes, groups, title, words


def test_every_turn_has_a_box_that_says_how_it_was_answered() -> None:
    drawn = boxes(conversation("x").to_svg())
    assert sorted(drawn) == ["t0", "t1", "t2", "t3", "t4"]
    for name, parts in {
        "t0": ("1", "from a search · 2 sources", "First? x", "→ x", "search tree: 2 queries, 2 chunks"),
        "t1": ("2", "from earlier turns · 1 source", "= Where is it? x", "→ 堰边", "no model calls"),
        "t2": ("3", "from a search · REFUSED", "磨坊在哪里?", "search tree: gone"),
        "t3": ("2", "from the web", "The weather?"),
        "t4": ("3", "OPEN · not answered yet", "Open? x", "search tree: 2 queries, 2 chunks"),
    }.items():
        assert [part for part in parts if part not in words(drawn[name])] == [], words(drawn[name])
    assert "=" not in words(drawn["t3"]), "its question stands alone as it is"


def test_kinds_of_answers_have_colours_and_outlines() -> None:
    drawn = boxes(conversation("x").to_svg())
    shapes = {name: next(box.iter(f"{SVG}path")) for name, box in drawn.items()}
    assert len({shapes[name].get("fill") for name in ("t0", "t1", "t3", "t4")}) == 4
    assert (shapes["t2"].get("fill"), shapes["t2"].get("stroke")) == (shapes["t0"].get("fill"), "#a3260c")
    assert [name for name, shape in shapes.items() if shape.get("stroke-dasharray")] == ["t4"]
    assert str(drawn["t2"].get("class")).split() == ["node", "turn", "search", "refused"]


def test_branches_stand_side_by_side_in_frames_with_their_names() -> None:
    svg = conversation("x").to_svg()
    main, fork = groups(svg, "cluster")
    assert "main" in words(main)
    assert "fork x · active" in words(fork)
    assert "from turn 1 of main" in words(fork)
    lefts = {name: float(str(next(box.iter(f"{SVG}text")).get("x"))) for name, box in boxes(svg).items()}
    assert max(lefts["t0"], lefts["t1"], lefts["t2"]) < min(lefts["t3"], lefts["t4"])


def test_edges_lead_from_parents_and_dashed_ones_from_reused_evidence() -> None:
    dot = conversation("x").to_dot()
    edges = {
        (*re.findall(r"t\d", line)[:2], re.findall(r'class="(\w+)"', line)[0], "style=dashed" in line)
        for line in dot.splitlines()
        if " -> " in line
    }
    assert edges == {
        ("t0", "t1", "path", False),
        ("t1", "t2", "path", False),
        ("t0", "t3", "fork", False),
        ("t3", "t4", "path", False),
        ("t0", "t1", "reuse", True),
    }
    titles = [title(edge) for edge in groups(conversation("x").to_svg(), "edge")]
    assert "turn 2 answers from what turn 1 found: weir.md" in titles


def test_long_text_is_shortened_in_the_box_and_whole_in_its_tooltip() -> None:
    text = "长文 with several words. " * 60
    box = boxes(conversation(text).to_svg())["t0"]
    assert text in title(box)
    assert "source: mill.md" in title(box)
    assert "…" in words(box)
    assert len(words(box)) < 700


def test_conversation_that_nobody_has_spoken_in_is_drawn() -> None:
    svg = long_talk(0).to_svg()
    assert "no turn of its own" in words(groups(svg, "node")[0])


@settings(max_examples=8)
@given(
    st.text(st.characters())
    | st.text(st.sampled_from("<>&\"'\\\x00\x1b\n\r\t\ud800\ufffe#;NGElrx]]>汉{}|-"), max_size=40)
)
def test_svg_is_xml_and_its_titles_hold_the_text_whatever_it_is(text: str) -> None:
    drawn = boxes(conversation(text).to_svg())
    assert sorted(drawn) == ["t0", "t1", "t2", "t3", "t4"]
    assert " ".join(printable(text).split()) in " ".join(title(drawn["t0"]).split())


def test_attacks_stay_text() -> None:
    picture = ET.fromstring(conversation(ATTACK).to_svg())
    assert not [element for element in picture.iter() if element.tag.split("}")[-1] in {"script", "img", "image"}]


def test_five_hundred_turns_draw_within_seconds() -> None:
    tree = long_talk(500)
    started = sum(os.times()[:4])
    svg = tree.to_svg()
    assert len(boxes(svg)) == 500
    assert sum(os.times()[:4]) - started < 5, "CPU seconds of this process and the programs it ran"


def test_graphviz_source_is_shown_by_notebooks_without_dot() -> None:
    tree = long_talk(3)

    assert tree.to_graphviz()._repr_mimebundle_() == {"image/svg+xml": tree.to_svg()}
