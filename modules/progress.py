"""Callbacks that long work reports its progress to."""

from __future__ import annotations

from collections.abc import Callable

StageProgress = Callable[[int, int, str], None]
"""Called with (done, total, stage), such as (3, 50, "embed")."""
ByteProgress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all); in all is 0 where it is not known."""
