"""The cores that this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's share of the machine, in its own view: "200000 100000" are two cores, "max 100000" all."""
_share: int | None = None
"""Most cores that the process counts; None without a share."""


def use_cores(cores: int) -> None:
    """Let this process count no more than so many cores, as its share of a machine that other workers use too."""
    global _share  # noqa: PLW0603 - the share of a process is one number
    _share = cores


def usable_cores(quota: Path = _QUOTA) -> int:
    """Return the number of cores, at least 1, that the process may run on and its container or share is."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _given(quota) or cores, _share or cores))


def _given(quota: Path) -> int | None:
    """Return the cores of a container, rounded up; None without a limit."""
    try:
        given, period = quota.read_text(encoding="ascii").split()
        return math.ceil(int(given) / int(period))
    except (OSError, ValueError, ZeroDivisionError):  # no cgroup of version 2, or "max"
        return None
