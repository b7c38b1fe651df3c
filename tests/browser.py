"""Pages in a real browser, without a window."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")

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
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [str(CHROMIUM), *_FLAGS, f"--user-data-dir={profile}", f"{page.as_uri()}{address}"],
            capture_output=True,
            check=True,
            timeout=180,
        )
    return Look(elements=done.stdout.decode(), console=console_messages(done.stderr.decode(errors="replace")))


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
