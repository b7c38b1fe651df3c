"""Clocks that go wrong, for LangGraph's ids of checkpoints, which begin with the time of their process."""

from __future__ import annotations

import itertools
import time
import uuid
from types import SimpleNamespace

import pytest
from langgraph.checkpoint.base import id as ids
from langgraph.pregel import _checkpoint


class Clock:
    """Seconds since 1970 that a test sets, in LangGraph's ids."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.now_s = time.time()
        patch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: int(self.now_s * 1e9)))

    def in_another_process(self, now_s: float) -> None:
        """Make ids as a process does that starts now, on a machine with this time."""
        self._patch.setattr(ids, "_last_v6_timestamp", None)
        self.now_s = now_s


def make_ids_decrease(patch: pytest.MonkeyPatch) -> None:
    """Give each checkpoint a smaller id than all before, as if each were saved on a machine that is further behind."""
    numbers = itertools.count()

    def smaller(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
        return uuid.UUID(int=ids.uuid6(node, clock_seq).int - (next(numbers) << 100))

    patch.setattr(_checkpoint, "uuid6", smaller)
