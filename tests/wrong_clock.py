"""A wall clock that is wrong, for a whole process."""

from __future__ import annotations

import datetime
import time
from types import SimpleNamespace
from typing import Self

import grpc._channel
import pymilvus  # noqa: F401 - brings pandas, whose C code needs the real ``datetime``


class WrongClock:
    """Replaces the wall clock of this process; make one before judgetree and LangGraph are imported."""

    def __init__(self) -> None:
        # The deadlines that gRPC computes in Python are compared with the right time, in C.
        grpc._channel.time = SimpleNamespace(**vars(time))  # type: ignore[attr-defined]
        self._right_ns = time.time_ns
        self._offset_ns, self._stands_ns = 0, 0
        time.time_ns = self.now_ns
        time.time = lambda: self.now_ns() / 1e9
        clock = self

        class Datetime(datetime.datetime):
            __slots__ = ()  # libraries in C compare its size

            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> Self:
                return cls.fromtimestamp(clock.now_ns() / 1e9, tz)

        datetime.datetime = Datetime  # type: ignore[misc]

    def now_ns(self) -> int:
        """Return the wrong time."""
        return self._stands_ns or self._right_ns() + self._offset_ns

    def set(self, offset_s: float | None) -> None:
        """Be wrong by so many seconds from now on; None lets the clock stand."""
        if offset_s is None:
            self._stands_ns = self.now_ns()
        else:
            self._stands_ns, self._offset_ns = 0, int(offset_s * 1e9)
