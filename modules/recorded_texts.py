"""Which texts of model calls are kept."""

from __future__ import annotations

from typing import Literal

Record = Literal["full", "prompts", "none"]
"""Which texts of a model call are kept: its messages and its reply, its messages alone, or none."""
