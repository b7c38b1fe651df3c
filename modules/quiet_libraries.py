"""Turns off the usage statistics that some libraries send to their vendors by default."""

from __future__ import annotations

import os
from collections.abc import Mapping

QUIET: Mapping[str, str] = {
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime from 1.31 on, also through proxies that are set
    "RAGAS_DO_NOT_TRACK": "true",  # in this spelling only
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Environment variables that turn them off, by name."""


def keep_libraries_quiet() -> None:
    """Turn off the statistics of all of them; call it before importing one."""
    os.environ.update(QUIET)
