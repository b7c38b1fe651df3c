"""Pictures of random trees: no edge crosses a box, no boxes overlap, no text leaves its box."""

from __future__ import annotations

import pytest

from judgetree.graphs.drawing.dot import Direction
from tests.random_trees import random_tree
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
