"""Pictures of random trees: no edge crosses a box, no boxes overlap, no text leaves its box."""

from __future__ import annotations

import re

import pytest

from judgetree.graphs.drawing.dot import Direction
from judgetree.graphs.drawing.wrapping import levels_below
from tests.random_trees import random_tree, tree_of
from tests.svg_geometry import collisions

TREES = 10
"""``python -m benchmarks.tree_geometry`` draws 300."""


@pytest.mark.parametrize("direction", ["right", "down"])
@pytest.mark.parametrize("fold", [True, False])
def test_nothing_collides(direction: Direction, fold: bool) -> None:
    for seed in range(TREES):
        assert not collisions(random_tree(seed).to_svg(direction=direction, fold=fold)), f"random_tree({seed})"


def test_collisions_are_found() -> None:
    svg = random_tree(1).to_svg()
    moved = svg.replace('x="', 'x="9')
    assert any("leaves" in found for found in collisions(moved))


def test_a_layout_whose_edges_cannot_be_routed_is_made_wider() -> None:
    assert not collisions(random_tree(166).to_svg(direction="down"))


@pytest.mark.parametrize("nodes", [12, 96, 232])
def test_a_tree_that_grows_downwards_stays_narrow(nodes: int) -> None:
    svg = tree_of(nodes).to_svg(direction="down")
    assert not collisions(svg)
    width = re.search(r'width="(\d+)pt"', svg)
    assert width is not None
    assert int(width[1]) < 2_400


def test_a_further_row_begins_below_all_of_the_row_before() -> None:
    levels = levels_below(tree_of(12).root, {})
    assert [levels["1", f"1/{rank}"] for rank in range(5)] == [1, 1, 4, 4, 4]  # a sub-question of five beside one chunk
    assert [levels["1.0", f"1.0/{rank}"] for rank in range(5)] == [1] * 5
