"""Work with a real model, in pieces: which questions it has still to be asked, and where its lines are kept."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from rich.progress import Progress

from judgetree.evaluation.runs.experiment import experiment_keys

from .questions import ids_of

HERE = Path(__file__).parent
KEPT = HERE / "kept"
BATCH = 5
"""Questions that are asked before their lines are kept."""


def model_of(llm: str | None) -> str:
    """Return the model that is asked: ``llm``, or that of ``evidence.yaml``."""
    return llm or str(experiment_keys(HERE / "evidence.yaml")["llm"])


def kept_folder(model: str) -> Path:
    """Return the folder with the lines of a model."""
    return KEPT / re.sub(r"[^0-9A-Za-z.]+", "-", model.rpartition("#")[2]).strip("-")


def kept_file(name: str, model: str) -> Path:
    """Return the file that keeps a part's questions as a model judged them."""
    return kept_folder(model) / f"{name}.jsonl"


def batches(done: Mapping[str, Collection[str]], *, most: int) -> Iterator[tuple[str, list[str]]]:
    """Yield what is left to ask, part by part in turns, so that a stop leaves all of them equally far.

    Args:
        done: Ids that need not be asked, by the name of each part.
        most: Questions of each part.
    """
    left = {name: [each for each in ids_of(name)[:most] if each not in ids] for name, ids in done.items()}
    while any(left.values()):
        for name, ids in left.items():
            if ids:
                yield name, ids[:BATCH]
                left[name] = ids[BATCH:]


def with_bar(title: str, waiting: Iterator[tuple[str, list[str]]]) -> Iterator[tuple[str, list[str]]]:
    """Yield pieces of work, and show how many of their questions are done."""
    if pieces := list(waiting):
        with Progress() as progress:
            bar = progress.add_task(title, total=sum(len(ids) for _, ids in pieces))
            for name, ids in pieces:
                yield name, ids
                progress.advance(bar, len(ids))
