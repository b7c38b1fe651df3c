"""What is seen first of trees of some size: text that can be read, and the path to the answer."""

from __future__ import annotations

from typing import cast

import pytest

from tests.app.server.page.looking import look
from tests.app.server.page.test_modules import run
from tests.driver import Page, needs_driver
from tests.random_trees import tree_of

pytestmark = [needs_driver, pytest.mark.slow]

SHOW = """
const pane = new it.TreePane();
document.querySelector(".ask .tree-pane").replaceWith(pane.element);
window.pane = pane;
pane.show(DOCUMENT);
"""
SMALLEST = """
const frame = document.querySelector(".tree-frame");
const scale = new DOMMatrix(getComputedStyle(frame.querySelector(".stage")).transform).a;
const isText = (each) => each.nodeType === 3 && each.data.trim();
const sizes = [...frame.querySelectorAll(".node, .node *")]
  .filter((one) => [...one.childNodes].some(isText) && !one.closest(".unseen"))
  .map((one) => parseFloat(getComputedStyle(one).fontSize) * scale);
return { outline: frame.classList.contains("outline"), smallest: Math.min(...sizes) };
"""
CUT = """
const { left, right, top, bottom } = document.querySelector(".tree-frame").getBoundingClientRect();
return [...document.querySelectorAll(".node")].map((one) => one.getBoundingClientRect())
  .filter((box) => box.left < left - 1 || box.right > right + 1 || box.top < top - 1 || box.bottom > bottom + 1).length;
"""
SEEN = """
const { left, right, top, bottom } = document.querySelector(".tree-frame").getBoundingClientRect();
const isSeen = ({ dataset }) => {
  const box = document.querySelector(`.node[data-id="${dataset.id}"]`).getBoundingClientRect();
  return box.left >= left && box.right <= right && box.top >= top && box.bottom <= bottom;
};
return [...document.querySelectorAll("SELECTOR")].filter(isSeen).map(({ dataset }) => dataset.id);
"""
CLICK = "[...document.querySelectorAll('.tree-tools button')].find((one) => one.innerText === '{}').click()"
CARDS = "return document.querySelectorAll('.node').length"


def show(page: Page, nodes: int, *, max_depth: int = 3) -> None:
    document = tree_of(nodes, max_depth=max_depth).to_json()
    assert run(page, "js/tree/pane.js", SHOW.replace("DOCUMENT", document)) is None
    page.wait("!document.querySelector('.node.new')")


@pytest.mark.parametrize("width", [1440, 1280, 390])
@pytest.mark.parametrize("nodes", [12, 96, 232])
def test_the_first_view_can_be_read(page: Page, nodes: int, width: int) -> None:
    page.appear(width=width)
    if width < 800:
        page.click("[data-side=tree]")
    show(page, nodes)
    seen = page.run(SMALLEST)
    assert isinstance(seen, dict)
    assert seen["smallest"] >= 9, seen
    if nodes == 12:
        assert seen["outline"] is (width == 390)
    if not seen["outline"]:
        assert page.run(CUT) == 0
    look(page, f"tree-{nodes}-{width}")


def test_dead_branches_are_closed_and_all_can_be_shown(page: Page) -> None:
    show(page, 96)
    leading = "return [...document.querySelectorAll('.node.query.leading')].map((one) => one.ariaLevel)"
    assert page.run(leading) == ["1", "3", "5", "7"]
    assert page.run("return document.querySelectorAll('.node.query.refused[aria-expanded=true]').length") == 0
    assert page.run("return document.querySelectorAll('.node.query.refused[aria-expanded=false]').length") > 1
    page.run(CLICK.format("Show all"))
    assert page.run(CARDS) == 96
    page.click("[aria-label='Show as an outline']")
    look(page, "tree-96-all")
    page.click("[aria-label='Fit into the window']")
    assert page.run(CUT) == 0
    page.run(CLICK.format("Fold useless"))
    assert page.run(CARDS) < 48


def test_all_of_a_huge_tree_is_read_from_the_question_along_the_path_to_the_answer(page: Page) -> None:
    show(page, 935, max_depth=6)
    page.run(CLICK.format("Show all"))
    assert page.run(CARDS) == 935
    page.click("[aria-label='Show as an outline']")
    page.wait("!document.querySelector('.node.new')")
    assert page.run(SMALLEST) == {"outline": False, "smallest": pytest.approx(9)}
    look(page, "tree-935-all")
    assert page.run(SEEN.replace("SELECTOR", ".node.leading.query")) == ["q:1", "q:1.0"]
    page.write(".tree-find input", "step 1.0.0.1 of")
    page.wait("document.querySelector('.tree-find .faint').innerText === '1 match'")
    seen = cast(list[str], page.run(SEEN.replace("SELECTOR", ".node")))
    assert {"q:1.0.0.1", "c:1.0.0/1.0.0/1"} < set(seen), "what was found is in the middle, among others"
    look(page, "tree-935-found")


def test_the_wheel_moves_a_tree_in_both_directions_and_zooms_with_control(page: Page) -> None:
    show(page, 12)
    scroll = """const frame = document.querySelector(".tree-frame");
      frame.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, ...GIVEN }));
      const { a, e, f } = new DOMMatrix(getComputedStyle(frame.querySelector(".stage")).transform); return [a, e, f];"""
    scale, x, y = cast(list[float], page.run(scroll.replace("GIVEN", "{}")))
    assert page.run(scroll.replace("GIVEN", "{ deltaX: 30, deltaY: 50 }")) == pytest.approx([scale, x - 30, y - 50])
    assert page.run(scroll.replace("GIVEN", "{ deltaY: 20, shiftKey: true }")) == pytest.approx([scale, x - 50, y - 50])
    zoomed = cast(list[float], page.run(scroll.replace("GIVEN", "{ deltaY: -100, ctrlKey: true }")))
    assert zoomed[0] > scale
