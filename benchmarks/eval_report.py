"""The report of a batch run of three systems: how long it takes, and whether a real browser opens it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.browser import CHROMIUM, look_at

from .eval_runs import finished_run
from .measurement import Row, not_measured

MOST_S = 20
END_OF_PAGE = "</html>"


def measure() -> list[Row]:
    """Measure ``judgetree eval report`` as a process, then its page in Chromium."""
    run = finished_run()
    started = time.perf_counter()
    command = [sys.executable, "-m", "judgetree.app", "eval", "report", str(run.folder)]
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - started
    page = run.folder / "report.html"
    size = f"{page.stat().st_size / 1e6:.1f} MB" if page.exists() else "no report.html"
    written = Row(
        f"judgetree eval report of {run.measured.asked} rows",
        f"{seconds:.1f} s",
        f"< {MOST_S} s",
        holds=seconds < MOST_S and page.exists(),
        values=(seconds,),
        unit="s",
        note=f"report.html {size}",
    )
    return [written, _opened(page)] if page.exists() else [written]


def _opened(page: Path) -> Row:
    what, required = "report.html in a real Chromium", "whole, nothing on the console"
    if CHROMIUM is None:
        return not_measured(what, "no Chromium on the PATH", required)
    started = time.perf_counter()
    look = look_at(page)
    shown = f": {look.console[0][:120]}" if look.console else ""
    return Row(
        what,
        f"{time.perf_counter() - started:.1f} s, {len(look.console)} messages on the console{shown}",
        required,
        holds=END_OF_PAGE in look.elements and not look.console,
    )
