"""The report of a batch run of three systems: how long it takes, and whether a real browser opens it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .eval_runs import finished_run
from .measurement import Row

MOST_S = 20
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
    "--enable-logging=stderr",
    "--v=0",
    "--dump-dom",
)
_CONSOLE = re.compile(r"^\[[^\]]*:(?:INFO|WARNING|ERROR):CONSOLE[^\]]*\] (.*)$", re.MULTILINE)
END_OF_PAGE = "</html>"


def console_messages(log: str) -> list[str]:
    """What a page has written to its console, script errors among it, out of Chromium's log."""
    return _CONSOLE.findall(log)


def look_at(page: Path, browser: str) -> tuple[str, list[str]]:
    """The page's elements once its scripts have run, and what they wrote to the console."""
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, *_FLAGS, f"--user-data-dir={profile}", page.as_uri()]
        done = subprocess.run(command, capture_output=True, check=True, timeout=180)
    return done.stdout.decode(), console_messages(done.stderr.decode(errors="replace"))


def measure() -> list[Row]:
    """``judgetree eval report`` as a command, imports included, then its page in Chromium."""
    run = finished_run()
    started = time.perf_counter()
    command = [sys.executable, "-m", "judgetree.app", "eval", "report", str(run.folder)]
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - started
    page = run.folder / "report.html"
    size = f"{page.stat().st_size / 1e6:.1f} MB" if page.exists() else "no report.html"
    written = Row(
        what=f"judgetree eval report of {run.measured.asked} rows; size of report.html",
        measured=f"{seconds:.1f} s; {size}",
        required=f"< {MOST_S} s",
        holds=seconds < MOST_S and page.exists(),
    )
    return [written, _opened(page)] if page.exists() else [written]


def _opened(page: Path) -> Row:
    what, required = "report.html in a real Chromium", "whole, nothing on the console"
    if CHROMIUM is None:
        return Row(what=what, measured="not measured: no Chromium on the PATH", required=required)
    started = time.perf_counter()
    elements, messages = look_at(page, CHROMIUM)
    shown = f": {messages[0][:120]}" if messages else ""
    return Row(
        what=what,
        measured=f"{time.perf_counter() - started:.1f} s, {len(messages)} messages on the console{shown}",
        required=required,
        holds=END_OF_PAGE in elements and not messages,
    )
