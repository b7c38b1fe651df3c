"""What ``judgetree`` alone says: which home it uses, what is there, and what to do next in this folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .terminal.home import home_in_use
from .terminal.terminal import busy, fit, write_result

if TYPE_CHECKING:
    from ..graphs.rag.thread_runs import ThreadSummary

_MANIFESTS = ("*/manifest.json", "runs/*/manifest.json")
"""Where runs are looked for, below the current folder."""
_SHOWN = 3
"""Most collections, and most runs, that are named."""
_QUESTION_COLUMNS = 60


def say_next_step() -> None:
    """Print the home, what is there, and the next commands; the home also where the rest cannot be read.

    Raises:
        SettingsError: The settings or the checkpoints cannot be used.
        CollectionError: The database cannot be opened.
    """
    with busy():
        from ..modules.settings import load_settings

        settings = load_settings()
    write_result(home_in_use(settings))
    with busy("looking"):
        from .stores.collections import read_names
        from .terminal.saved import newest_threads

        collections, threads = read_names(settings), newest_threads(settings, 1)
        runs = sorted({file.parent for pattern in _MANIFESTS for file in Path().glob(pattern)})
    unreported = [run for run in runs if (run / "rows.jsonl").exists() and not (run / "report.html").exists()]
    write_result("\n".join(_state(collections, threads, runs)))
    write_result("\nNext:")
    for step in (*_steps(collections, threads, runs, unreported), "judgetree --help        # all commands"):
        write_result(f"  {step}")


def _state(collections: list[str], threads: list[ThreadSummary], runs: list[Path]) -> Iterator[str]:
    yield f"Collections: {_listed(collections)}"
    yield f"Newest question: {fit(threads[0].query, _QUESTION_COLUMNS) if threads else 'none'}"
    yield f"Runs below this folder: {_listed([str(run) for run in runs])}"


def _listed(names: list[str]) -> str:
    others = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + others or "none"


def _steps(
    collections: list[str], threads: list[ThreadSummary], runs: list[Path], unreported: list[Path]
) -> Iterator[str]:
    """Yield the commands for what is missing, the most urgent first."""
    for run in unreported[:_SHOWN]:
        yield f"judgetree eval report {shlex.quote(str(run))}"
    if not collections:
        yield "judgetree index FOLDER -c NAME        # your documents"
        return
    collection = collections[0] if len(collections) == 1 else "NAME"
    yield f'judgetree ask "…" -c {collection}'
    if threads:
        yield f"judgetree tree {shlex.quote(threads[0].thread_id)}        # how it was answered"
        if not runs:
            yield f"judgetree eval run --questions FILE --corpus {collection} --out runs/first        # does it pay?"
