"""How far a command is, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from .terminal import is_live, notes, say

STAGES: Mapping[str, str] = {
    "wait": "waiting for another writer",
    "load": "reading files",
    "embed": "embedding chunks",
    "write": "writing chunks",
}


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int, str], None]]:
    """What stages report (done, total, stage) to: a bar for each in a terminal, gone at the end; nothing elsewhere."""
    if not is_live(sys.stderr):
        yield lambda done, total, stage: None
        return
    columns = (TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tasks: dict[str, TaskID] = {}
    with _bars(*columns, transient=True) as bars:

        def show(done: int, total: int, stage: str) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(STAGES.get(stage, stage))
            bars.update(tasks[stage], completed=done, total=total)

        yield show


@contextmanager
def counting_bar(things: str) -> Iterator[Callable[[int, int, str], None]]:
    """What long work reports (done, total, remark) to, one thing after the other.

    A bar in a terminal, with the remark behind it; elsewhere a line a tenth of the way.
    """
    if not is_live(sys.stderr):

        def tell(done: int, total: int, remark: str) -> None:
            if done and done * 10 // total > (done - 1) * 10 // total:
                say(f"{done}/{total} {things}")

        yield tell
        return
    counted = (TextColumn(things), BarColumn(), MofNCompleteColumn())
    with _bars(*counted, TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[remark]}")) as bars:
        task = bars.add_task("", total=None, remark="")

        def show(done: int, total: int, remark: str) -> None:
            bars.update(task, completed=done, total=total, remark=remark)

        yield show


def _bars(*columns: ProgressColumn, transient: bool = False) -> Progress:
    return Progress(*columns, console=notes(), transient=transient, redirect_stdout=False, redirect_stderr=False)
