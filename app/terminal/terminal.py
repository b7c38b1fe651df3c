"""Output of commands: results on standard output, progress and remarks on standard error."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TextIO

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ...graphs.drawing.layout import columns, one_line, shorten
from ...modules.errors import SettingsError
from ...modules.storage.texts import printable

STAGES: Mapping[str, str] = {
    "wait": "waiting for another writer",
    "load": "reading files",
    "embed": "embedding chunks",
    "write": "writing chunks",
    "triples": "drawing triples",
    "workers": "starting workers",
}
LINE_EVERY_S = 5.0


@contextmanager
def progress_bar(clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[int, int, str], None]]:
    """Give a callback for (done, total, stage).

    In a terminal it draws one transient bar per stage; elsewhere it prints a line every ``LINE_EVERY_S`` seconds, and
    none for what takes less.
    """
    if not is_live(sys.stderr):
        yield lines_of_progress(clock)
        return
    counted = (TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn(), _SpeedColumn())
    tasks: dict[str, TaskID] = {}
    with bars_of(*counted, TimeElapsedColumn(), TimeRemainingColumn(), transient=True) as bars:

        def show(done: int, total: int, stage: str) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(STAGES.get(stage, stage))
            bars.update(tasks[stage], completed=done, total=total)

        yield show


def lines_of_progress(clock: Callable[[], float] = time.monotonic) -> Callable[[int, int, str], None]:
    """Return a callback for (done, total, stage) that prints a line every ``LINE_EVERY_S`` seconds, at first none."""
    printed = clock()
    first: dict[str, tuple[float, int]] = {}

    def report(done: int, total: int, stage: str) -> None:
        nonlocal printed
        if done >= total:
            return
        now = clock()
        # From the first advance on: what was saved comes with it, at once.
        began, before = first.setdefault(stage, (now, done)) if done else (now, done)
        if now - printed >= LINE_EVERY_S:
            printed = now
            speed = (done - before) / (now - began) if done > before else 0.0
            rate = f", {speed:,.0f} a second" if speed >= 1 else ""
            rest = f", {_duration((total - done) / speed)} left" if speed else ""
            say(f"{STAGES.get(stage, stage)}: {done:,} of {total:,}{rate}{rest}")

    return report


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


class _SpeedColumn(ProgressColumn):
    """Steps a second, once they are known."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed and task.speed >= 1 else "")


@contextmanager
def counting_bar(things: str) -> Iterator[Callable[[int, int, str], None]]:
    """Give a callback for (done, total, remark), called after each of many things.

    In a terminal it draws a bar with the remark; elsewhere it prints a line for each tenth of the way.
    """
    if not is_live(sys.stderr):

        def report(done: int, total: int, remark: str) -> None:
            if done and done * 10 // total > (done - 1) * 10 // total:
                say(f"{done}/{total} {things}")

        yield report
        return
    counted = (TextColumn(things), BarColumn(), MofNCompleteColumn())
    with bars_of(*counted, TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[remark]}")) as bars:
        task = bars.add_task("", total=None, remark="")

        def show(done: int, total: int, remark: str) -> None:
            bars.update(task, completed=done, total=total, remark=remark)

        yield show


def bars_of(*columns: ProgressColumn, transient: bool = False) -> Progress:
    """Make bars on standard error with these columns."""
    return Progress(*columns, console=notes(), transient=transient, redirect_stdout=False)


PIPE_COLUMNS = 120
"""Width of a drawing for a file or a pipe, unless COLUMNS is set."""

Cell = tuple[str, str]
"""A text and its rich style, or ``""``."""


def prepare_streams() -> None:
    """Make all text writable: a terminal shows "?" for unknown characters, a file or a pipe gets UTF-8.

    Python has None for a stream that was closed (``>&-``): what goes there is dropped.
    """
    sys.stdout, sys.stderr = sys.stdout or io.StringIO(), sys.stderr or io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if stream.isatty():
            stream.reconfigure(errors="replace")
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def is_live(stream: TextIO) -> bool:
    """Return whether a drawing on the stream can be redrawn: a terminal with cursor movements."""
    return _real(stream).isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def width() -> int:
    """Return the columns of the terminal, else COLUMNS, else ``PIPE_COLUMNS``."""
    return shutil.get_terminal_size((PIPE_COLUMNS, 24)).columns


def notes() -> Console:
    """Return the console on standard error: what it prints stands above the bars and lines that it redraws."""
    return _console_on(_real(sys.stderr))


def _real(stream: TextIO) -> TextIO:
    """Return the stream behind the one that rich puts into its place while it redraws."""
    found: TextIO = getattr(stream, "rich_proxied_file", stream)
    return found


@lru_cache(maxsize=1)
def _console_on(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False, soft_wrap=True)


def say(text: str, *, style: str = "") -> None:
    """Print a remark on standard error; the terminal wraps it, so that commands in it can be copied."""
    notes().print(Text(printable(text), style=style))


def agrees(question: str) -> bool:
    """Ask on standard error whether to go on, before something is deleted or paid for.

    Raises:
        SettingsError: Standard input is no terminal.
    """
    if not sys.stdin.isatty():
        raise SettingsError(f"{question} Standard input is no terminal, so add --yes to confirm.")
    return typer.confirm(question, err=True)


@contextmanager
def busy(doing: str = "loading the program") -> Iterator[None]:
    """Show a transient spinner in the terminal during work of some seconds, mostly imports."""
    if not is_live(sys.stderr):
        yield
        return
    with notes().status(Text(doing, style="dim"), spinner="dots"):
        yield


@contextmanager
def resumable(kept: Callable[[], str]) -> Iterator[None]:
    """On Ctrl-C, say what is kept, as in "Scores so far are kept", and that the same command continues.

    Raises:
        KeyboardInterrupt: Ctrl-C, after the message.
    """
    try:
        yield
    except KeyboardInterrupt:
        say(f"Stopped. {kept()}; the same command continues.")
        raise


def write_result(text: str) -> None:
    """Write the result to standard output, with a final line break; a terminal gets no control characters."""
    shown = printable(text) if sys.stdout.isatty() else text
    sys.stdout.write(shown if shown.endswith("\n") else shown + "\n")
    sys.stdout.flush()


def write_json(document: object) -> None:
    """Write the result as one JSON document to standard output."""
    write_result(json.dumps(document, ensure_ascii=False, indent=2))


def write_rows(rows: Iterable[Sequence[Cell]]) -> None:
    """Write aligned columns to standard output; lines are cut with "…" in a terminal only."""
    lines = [[(one_line(text), style) for text, style in row] for row in rows]
    widths = [max(columns(text) for text, _ in column) for column in zip(*lines, strict=True)]
    aligned = [
        Text("  ").join(_padded(cell, wanted) for cell, wanted in zip(line, [*widths[:-1], 0], strict=True))
        for line in lines
    ]
    if sys.stdout.isatty():
        for line in aligned:
            line.truncate(width(), overflow="ellipsis")
    Console(highlight=False, soft_wrap=True).print(Text("\n").join(aligned))


def _padded(cell: Cell, wanted: int) -> Text:
    text, style = cell
    return Text(text, style=style).append(" " * max(wanted - columns(text), 0))


def fit(text: str, room: int) -> str:
    """Shorten the text to one line of ``room`` columns, at least 8."""
    return shorten(text, max(room, 8))


def local_time(timestamp: str) -> str:
    """Format an ISO 8601 timestamp as local date, hour and minute; ``""`` stays ``""``."""
    return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M") if timestamp else ""
