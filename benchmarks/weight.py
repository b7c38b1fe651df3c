"""Size and start-up time of the core install. Needs a package index."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .measurement import Row

REPO = Path(__file__).parents[1]
RUNS = 7


def measure() -> list[Row]:
    """Measure a fresh virtual environment with ``pip install ".[embedders]"``."""
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        scripts = venv / ("Scripts" if sys.platform == "win32" else "bin")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        before = _megabytes(venv)
        install = [scripts / "python", "-m", "pip", "install", "-q", f"{REPO}[embedders]"]
        subprocess.run(install, check=True, capture_output=True)
        size = _megabytes(venv) - before
        importing = _median_s(scripts / "python", "-c", "import judgetree") - _median_s(scripts / "python", "-c", "")
        helping = _median_s(scripts / "judgetree", "--help")
    return [
        Row(
            "install with the extra embedders, without pip itself",
            f"{size:.0f} MB",
            "< 900 MB",
            size < 900,
            (size,),
            "MB",
        ),
        Row(f"import judgetree, median of {RUNS}", f"{importing:.3f} s", "< 0.3 s", importing < 0.3, (importing,), "s"),
        Row(f"judgetree --help, median of {RUNS}", f"{helping:.2f} s", "< 1 s", helping < 1, (helping,), "s"),
    ]


def _megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def _median_s(*command: object) -> float:
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run([str(part) for part in command], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)
