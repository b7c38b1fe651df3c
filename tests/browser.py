"""Pages in a real browser, without a window."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IS_CI = os.environ.get("CI") == "true"
"""There a browser that is missing makes tests fail, which skip elsewhere."""
HOW_TO_INSTALL = "apt-get install chromium chromium-driver fonts-liberation fonts-dejavu-core"
needs_browser = pytest.mark.skipif(CHROMIUM is None and not IS_CI, reason=f"no chromium: {HOW_TO_INSTALL}")

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
    "--enable-logging=stderr",
    "--v=0",
    "--dump-dom",
)
_CONSOLE = re.compile(r"^\[[^\]]*:CONSOLE[^\]]*\] (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Look:
    """A page once its scripts have run."""

    elements: str
    """As HTML."""
    console: list[str]
    """What it wrote there, script errors among it."""


def look_at(page: Path, address: str = "") -> Look:
    """Open a page in Chromium; ``address`` is what stands behind its file name, such as ``#open=1``."""
    assert CHROMIUM is not None, HOW_TO_INSTALL
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", f"{page.as_uri()}{address}"],
            capture_output=True,
            check=True,
            timeout=180,
        )
    return Look(elements=done.stdout.decode(), console=console_messages(done.stderr.decode(errors="replace")))


_MEASURE = """
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {
  const inner = frame.contentDocument;
  for (const question of inner.querySelectorAll("details")) question.open = true;
  frame.contentWindow.setTimeout(() => {
    const scrolls = (box) => ["auto", "scroll"].includes(inner.defaultView.getComputedStyle(box).overflowX);
    const held = (one) => { for (let box = one; box; box = box.parentElement) if (scrolls(box)) return true; };
    const over = [...inner.body.querySelectorAll("*")].filter(
      (one) => one.getBoundingClientRect().right > frame.clientWidth + 1 && !one.closest("svg") && !held(one));
    const wide = [...inner.querySelectorAll(".wide")].filter((box) => box.scrollWidth > box.clientWidth + 1);
    const found = {
      width: inner.documentElement.scrollWidth, scrolling: wide.length,
      over: over.map((one) => `${one.tagName} ${one.className}: ${one.textContent.slice(0, 40)}`),
    };
    document.body.append(Object.assign(document.createElement("pre"), { textContent: JSON.stringify(found) }));
  }, 2000);
});
frame.srcdoc = JSON.parse(document.querySelector("script").textContent);
"""


@dataclass(frozen=True, kw_only=True)
class Width:
    """How a page fits into a window of some width, once all that folds is open."""

    width: int
    """What it needs, in pixels."""
    scrolling: int
    """How many of its tables scroll by themselves."""
    over: list[str]
    """Elements that reach over the edge, outside of all that scrolls by itself."""


def width_of(page: Path, folder: Path, *, window: int) -> Width:
    """Open a page in a frame of ``window`` pixels: Chromium's own window is no narrower than 500."""
    text = json.dumps(page.read_text(encoding="utf-8")).replace("<", "\\u003c")
    around = f'<meta charset="utf-8"><body><iframe width="{window}" height="4000" frameborder="0"></iframe>'
    frame = folder / "frame.html"
    frame.write_text(f'{around}<script type="application/json">{text}</script><script>{_MEASURE}</script>')
    found = re.search(r"<pre>(.*?)</pre>\s*</body>", look_at(frame).elements, re.DOTALL)
    assert found is not None
    return Width(**json.loads(html.unescape(found[1])))


def console_messages(log: str) -> list[str]:
    """What a page has written to its console, out of Chromium's log."""
    return _CONSOLE.findall(log)


def elements_of(page: Path | str, folder: Path | None = None, address: str = "") -> str:
    """The elements of a page, a file or text to be written to ``folder``, once its script ran without a word."""
    if isinstance(page, str):
        assert folder is not None
        (folder / "page.html").write_text(page, encoding="utf-8")
        page = folder / "page.html"
    look = look_at(page, address)
    assert look.console == []
    return look.elements
