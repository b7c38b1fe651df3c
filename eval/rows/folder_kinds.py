"""What else than a run a folder may hold: a sweep or a recording, by the names of their files."""

from __future__ import annotations

from pathlib import Path

from .two_copies import copy_of

SWEEP_FILE = "sweep.json"
RECORDING_FILE = "recording.jsonl"


def is_sweep_folder(folder: Path) -> bool:
    """Whether a folder holds a sweep."""
    file = folder / SWEEP_FILE
    return file.exists() or copy_of(file).exists()


def why_no_run(folder: Path) -> str:
    """Say what a folder without a finished question holds, and what to do."""
    if is_sweep_folder(folder):
        run = next((each.parent for each in sorted(folder.glob("*/rows.jsonl"))), None)
        named = f", such as {run}" if run else ""
        return f"{folder} is a sweep, of which `judgetree eval report` tells. Name one of its runs{named}."
    if (folder / RECORDING_FILE).exists():
        return f"{folder} is a recording: `judgetree replay {folder}` plays it."
    return f"{folder} holds no finished question. Run `judgetree eval run --out {folder} …` first."
