"""A look at the web page: steps that tests share, its accessibility, and pictures to be looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from tests.driver import Page

REPO = Path(__file__).parents[4]
PICTURES = REPO / "build" / "screenshots"
AXE = (REPO / "tests" / "axe" / "axe.min.js").read_text(encoding="utf-8")
_FITTING = (Path(__file__).parent / "fitting.js").read_text(encoding="utf-8")
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_CHECK = """
const done = arguments[arguments.length - 1];
const isEnding = (one) => one.effect.getComputedTiming().iterations !== Infinity;
const moving = document.getAnimations().filter(isEnding).map((one) => one.finished.catch(() => {}));
const words = ({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 300)} ${node.failureSummary}`);
Promise.all(moving).then(() => axe.run(document, { runOnly: RULES, resultTypes: ["violations"] })).then(
  ({ violations }) => done(violations.flatMap(words)), (error) => done([String(error)]));
"""


def ask(page: Page, question: str) -> None:
    """Send a question, and do not wait for its answer."""
    page.wait("document.querySelector('.composer textarea')")
    page.run("document.querySelector('.composer textarea').focus()")
    page.write(".composer textarea", question)
    page.press("Enter")
    page.wait("document.querySelector('.turn.live')")


def wait_for_answer(page: Page) -> None:
    """Wait until no question runs, and the tree of the newest turn stands still."""
    page.wait("document.querySelector('.turn') && !document.querySelector('.turn.live')")
    page.wait("!document.querySelector('.tree-pane.live')")


def violations(page: Page) -> list[str]:
    """What axe-core finds against WCAG 2.2 AA and its best practices."""
    page.run(f"if (!window.axe) {{ {AXE} }}")
    return cast(list[str], page.run_async(_CHECK.replace("RULES", json.dumps(_RULES))))


def unfitting(page: Page) -> list[str]:
    """What is cut off without a scrollbar, wider than the window, or broken inside a word."""
    return cast(list[str], page.run(_FITTING))


def look(page: Page, name: str) -> None:
    """Check the page as it is now, and keep a picture of it."""
    found = violations(page)
    assert not found, "\n".join(found)
    misfits = unfitting(page)
    assert not misfits, "\n".join(misfits)
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}.png").write_bytes(page.picture())
