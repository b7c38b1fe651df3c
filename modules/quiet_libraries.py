"""Libraries that report their use to their makers unless told otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping

QUIET: Mapping[str, str] = {
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime from 1.31 on, also through proxies that are set
    "RAGAS_DO_NOT_TRACK": "true",  # in this spelling only
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Variables of the environment that keep them from it, by name."""


def keep_libraries_quiet() -> None:
    """Have libraries report nothing; to be called before one of them is imported."""
    os.environ.update(QUIET)
