"""DOT and SVG: what stands in the boxes, and that no text of a document or a model breaks them."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from xml.etree import ElementTree as ET

import graphviz
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.graphs.drawing.boxes import CARD_WIDTH_PT
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.threads.state import JsonScalar
from judgetree.graphs.tree.nodes import VERDICT_LABELS, ChunkNode, QueryNode
from judgetree.modules.errors import DependencyError
from judgetree.modules.storage.texts import printable
from tests.cpu_time import cpu_time_below
from tests.graphs.fakes import answered
from tests.svg_boxes import SVG, boxes, title, words


def chunk(rank: int, child: QueryNode | None = None, text: str = "text", **metadata: JsonScalar) -> ChunkNode:
    return ChunkNode(
        chunk_id=f"c{rank}", text=text, metadata={"rank": rank, **metadata}, sub_runs=(child,) if child else ()
    )


def tree_with(*chunks: ChunkNode, query: str = "Who?", answer: str = "") -> SearchTree:
    return SearchTree(root=answered("root", query, answer, *chunks))


def sub_query(**fields: str) -> QueryNode:
    given: dict[str, str] = {"thread_id": "sub", "query": "And who?", "status": "finished", **fields}
    return QueryNode(parent_thread_id="root", depth=1, **given)  # type: ignore[arg-type]


def test_box_shows_verdict_origin_reason_and_open_question() -> None:
    svg = tree_with(
        chunk(
            3,
            verdict="judged",
            score=1,
            retrieval_score=0.8214,
            source="wiki/曹寅.md",
            reason="只有一部分",
            next_query="What next?",
        )
    ).to_svg()

    shown = words(boxes(svg)["c0"])
    for part in ("1", "holds a needed fact", "#4 · 0.821 · wiki/曹寅.md", "because: 只有一部分", "asks: What next?"):
        assert part in shown


def test_box_tells_the_round_that_found_the_chunk() -> None:
    drawn = boxes(
        tree_with(
            chunk(0, recursion_depth=0, found_by="Who?"),
            chunk(1, recursion_depth=1, found_by="And who?"),
            chunk(2, recursion_depth=1),
        ).to_svg()
    )
    assert "round 0 · #1" in words(drawn["c0"])
    assert "found by" not in words(drawn["c0"]), "the question stands above it"
    assert "round 1 · #2" in words(drawn["c1"])
    assert "found by: And who?" in words(drawn["c1"])
    assert "round" not in words(drawn["c2"])


def test_every_verdict_is_told_apart_by_mark_and_class() -> None:
    looks = [
        {"verdict": "judged", "score": int(label)} if label.isdigit() else {"verdict": label}
        for label in VERDICT_LABELS
    ]
    svg = tree_with(*(chunk(rank, **look) for rank, look in enumerate(looks))).to_svg()

    drawn = [boxes(svg)[f"c{rank}"] for rank in range(len(looks))]
    assert [str(box.get("class")).split()[-1] for box in drawn] == [f"verdict-{label}" for label in VERDICT_LABELS]
    assert len({words(box).split()[0] for box in drawn}) == len(VERDICT_LABELS)


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"status": "failed", "error": "ValueError('boom')"}, "[thread failed] ValueError('boom')"),
        ({"status": "open"}, "OPEN"),
        ({"answer_status": "refused", "answer": "I cannot answer this question."}, "[refused] I cannot answer"),
        ({"answer_status": "answered", "answer": "曹雪芹"}, "→ 曹雪芹"),
    ],
)
def test_query_box_marks_failed_open_and_refused_threads(fields: dict[str, str], shown: str) -> None:
    svg = tree_with(chunk(0, sub_query(**fields), verdict="judged", score=1)).to_svg()

    assert shown in words(boxes(svg)["q1"])


def test_error_of_a_sub_run_is_shown() -> None:
    svg = tree_with(chunk(0, verdict="judged", score=1, sub_run_error="not asked: budget spent")).to_svg()

    assert "sub-run: not asked: budget spent" in words(boxes(svg)["c0"])


def test_chunks_that_do_not_help_share_a_box() -> None:
    zeros = [chunk(rank, verdict="judged", score=0, reason=f"reason {rank}", source=f"{rank}.md") for rank in range(3)]
    failed = chunk(3, verdict="judged", score=0, sub_run_error="not asked")
    tree = tree_with(*zeros, failed, chunk(4, verdict="judged", score=2))

    drawn = boxes(tree.to_svg())
    assert set(drawn) == {"q0", "c3", "c4", "z0"}
    assert words(drawn["z0"]).split(maxsplit=1) == ["0", "3 that do not help"]
    assert all(f"{rank}.md · reason {rank}" in title(drawn["z0"]) for rank in range(3))
    assert set(boxes(tree.to_svg(fold=False))) == {"q0", "c0", "c1", "c2", "c3", "c4"}
    assert "c0" in boxes(tree_with(zeros[0]).to_svg()), "a single one keeps its box"


ODD = r"\N \G \l \\ &amp; &#38; <b> {a|b} C:\new"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("长文 with several words. " * 60, "…", id="shortened"),
        pytest.param(ODD, ODD, id="as it is written"),
        pytest.param(
            "First of all, a beginning of no interest. The drum of the KS-1 holds 40 l.",
            "… The drum of the KS-1 holds 40 l.",
            id="its decisive sentence",
        ),
    ],
)
def test_text_of_a_chunk_is_shown_in_its_box_and_whole_in_its_title(text: str, shown: str) -> None:
    box = boxes(tree_with(chunk(0, text=text), query="How much does the drum hold?").to_svg())["c0"]

    assert shown in words(box)
    assert len(words(box)) < 300
    assert text in title(box)


def test_a_tree_that_grows_downwards_is_narrower() -> None:
    def narrow(depth: int) -> QueryNode:
        child = narrow(depth - 1) if depth else None
        return QueryNode(thread_id=str(depth), query="Who?", chunks=(chunk(0, child, verdict="judged", score=1),))

    tree = SearchTree(root=narrow(3))
    assert width(tree.to_svg(direction="down")) < width(tree.to_svg()) / 4


def width(svg: str) -> float:
    return float(str(ET.fromstring(svg).get("width")).removesuffix("pt"))


@pytest.mark.parametrize("text", ["汉" * 400, "W" * 400, "word " * 100, "https://example.org/" + "x" * 300])
def test_text_stays_inside_its_box(text: str) -> None:
    box = boxes(tree_with(chunk(0, text=text)).to_svg())["c0"]

    outline = box.find(f"{SVG}polygon")
    assert outline is not None
    right = max(float(point.split(",")[0]) for point in str(outline.get("points")).split())
    for line in box.iter(f"{SVG}text"):
        content = "".join(line.itertext())
        ems = sum({"汉": 1.0, "W": 0.94}.get(char, 0.56) for char in content)  # Helvetica's own widths
        assert float(str(line.get("x"))) + ems * float(str(line.get("font-size"))) <= right


def test_card_is_as_wide_as_asked_for_whatever_it_holds() -> None:
    svg = tree_with(chunk(0, text="汉" * 400), chunk(1, text="x"), query="?").to_svg()

    for box in boxes(svg).values():
        shape = next(iter(box.iter(f"{SVG}polygon")), None)
        if shape is not None:
            xs = [float(point.split(",")[0]) for point in str(shape.get("points")).split()]
            assert CARD_WIDTH_PT <= max(xs) - min(xs) <= CARD_WIDTH_PT + 40


@settings(max_examples=40)
@given(
    st.text(st.characters()),
    st.text(st.sampled_from("<>&\"'\\\x00\x1b\n\r\t\ud800\ufffe#;NGElrx]]>汉{}|"), max_size=40),
)
def test_svg_is_xml_and_its_titles_hold_the_text_whatever_it_is(text: str, nasty: str) -> None:
    text = text + nasty
    tree = tree_with(chunk(0, sub_query(query=text), text=text, source=text, reason=text), query=text, answer=text)

    drawn = boxes(tree.to_svg())

    assert set(drawn) == {"q0", "q1", "c0"}
    expected = " ".join(printable(text).split())
    assert expected in " ".join(title(drawn["c0"]).split())


@pytest.mark.parametrize("text", ["]", "]]"])
def test_a_text_of_closing_brackets_is_drawn(text: str) -> None:
    assert title(boxes(tree_with(chunk(0, text=text), query=text, answer=text).to_svg())["q0"])


def test_dot_needs_no_graphviz_and_names_every_edge() -> None:
    dot = tree_with(chunk(0, sub_query()), chunk(1)).to_dot()

    assert dot.startswith("digraph")
    edges = [line.split(" [")[0].strip() for line in dot.splitlines() if "->" in line]
    assert edges == ["q0 -> c0", "c0 -> q1", "q0 -> c1"]


def test_missing_renderer_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))

    with pytest.raises(DependencyError, match="pip install graphviz-pure"):
        tree_with().to_svg()


def test_renderer_that_fails_is_named_with_what_it_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\necho no fonts >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(DependencyError, match="no fonts"):
        tree_with().to_svg()


def test_thousand_nodes_draw_within_seconds() -> None:
    def grow(number: int, depth: int) -> QueryNode:
        children = [grow(3 * number + rank + 1, depth + 1) if depth < 5 else None for rank in range(3)]
        chunks = tuple(chunk(rank, child, verdict="judged", score=1) for rank, child in enumerate(children))
        return QueryNode(thread_id=str(number), query="谁 asks?", depth=depth, chunks=chunks)

    tree = SearchTree(root=grow(0, 0))
    with cpu_time_below(5, of_programs=True):
        svg = tree.to_svg()
    assert len(boxes(svg)) == sum(1 + len(node.chunks) for node in tree.query_nodes()) > 1_000


def test_graphviz_source_is_shown_by_notebooks_without_dot(tmp_path: Path) -> None:
    tree = tree_with(chunk(0, sub_query()))
    source = tree.to_graphviz()

    assert isinstance(source, graphviz.Source)
    assert source._repr_mimebundle_() == {"image/svg+xml": tree.to_svg()}
    assert Path(source.save(directory=tmp_path)).read_text(encoding="utf-8") == tree.to_dot()
    assert (tmp_path / "search_tree.gv").exists()
