"""Runs of a benchmark, kept as ``docs/measured/data/NAME.json``: the newest last, none taken away."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from judgetree.evaluation.rows.code_version import code_version

from .measurement import NOT_MEASURED, Row

DATA = Path(__file__).parents[1] / "docs" / "measured" / "data"
VARIABLES = "JUDGETREE_BENCH_"
"""How the names of environment variables begin that say what a benchmark measures."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Run:
    """The rows of one run, and where they come from."""

    day: datetime.date | None
    """None where the day of the run was not written down."""
    machine: str
    versions: Mapping[str, str]
    """Versions by name, of Python, judgetree and what decides its speed."""
    command: str
    """What measures it again; "" for what was measured by hand."""
    note: str = ""
    """What was special about the machine or the code."""
    rows: tuple[Row, ...]


_RUNS = TypeAdapter(tuple[Run, ...])


def read_runs(name: str, folder: Path = DATA) -> tuple[Run, ...]:
    """Return the runs of a benchmark, the newest last; none if it was never measured.

    Raises:
        ValidationError: The file is not in the format of ``Run``.
    """
    file = folder / f"{name}.json"
    return _RUNS.validate_json(file.read_bytes()) if file.exists() else ()


def add_run(name: str, run: Run, folder: Path = DATA) -> None:
    """Add a run to the file of its benchmark, unless it has measured nothing."""
    if run.rows:
        write_runs(name, (*read_runs(name, folder), run), folder)


def write_runs(name: str, runs: Sequence[Run], folder: Path = DATA) -> None:
    """Write the file of a benchmark anew; fields that say nothing are left out."""
    text = _RUNS.dump_json(tuple(runs), indent=1, exclude_defaults=True)
    (folder / f"{name}.json").write_bytes(text + b"\n")


def run_of(name: str, rows: Sequence[Row], note: str = "") -> Run:
    """Return the run of today on this machine, without the rows that it could not measure."""
    kept = tuple(row for row in rows if not row.measured.startswith(NOT_MEASURED))
    known = {key: version for key, version in code_version().items() if version and key != "id"}
    day = datetime.date.today()
    return Run(day=day, machine=machine(), versions=known, command=command(name), note=note, rows=kept)


def command(name: str) -> str:
    """Return the command of a benchmark with the variables that are set for it; of a path it has the last part."""
    settings = {key: value for key, value in sorted(os.environ.items()) if key.startswith(VARIABLES) and value}
    words = [f"{key}={shlex.quote(Path(value).name)}" for key, value in settings.items()]
    return " ".join([*words, "python -m benchmarks", name])


def machine() -> str:
    """Describe this machine: cores, processor, memory and system."""
    memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
    return f"{os.cpu_count()} cores ({_processor()}), {memory} of memory, {platform.system()}"


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
