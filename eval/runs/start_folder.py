"""The folder in which a run was started, by which its data is found from other folders too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..datasets.registry import DATASETS
from .experiment import Experiment

_KEY = "started_in"
"""Key of the manifest: the folder as a path from the run directory, so that both may move together."""


def with_start_folder(manifest: Mapping[str, object], run: Path) -> dict[str, object]:
    """Return the manifest with the working directory, unless it names one."""
    try:
        here = Path(os.path.relpath(Path.cwd(), run.resolve())).as_posix()
    except ValueError:  # on another drive of Windows
        return dict(manifest)
    return {_KEY: here, **manifest}


def found_again(experiment: Experiment, manifest: Mapping[str, object], run: Path) -> Experiment:
    """Return the experiment with paths at which its data is there: as they are given, or from where the run started."""
    start = run / str(manifest.get(_KEY) or ".")
    name, _, rest = experiment.dataset.partition(":")
    attribute, _, path = ("", "", rest) if name in DATASETS else rest.partition(":")
    changes: dict[str, object] = {}
    if (found := _below(start, path)) is not None:
        changes["dataset"] = ":".join(filter(None, (name, attribute, str(found))))
    if experiment.corpus_folder is not None and (found := _below(start, str(experiment.corpus_folder))) is not None:
        changes["corpus"] = str(found)
    return experiment.model_copy(update=changes)


def _below(start: Path, path: str) -> Path | None:
    """Return the path from the folder ``start``, if it is only there."""
    given = Path(path).expanduser()
    moved = start / given
    return moved.resolve() if path and not given.exists() and moved.exists() else None
