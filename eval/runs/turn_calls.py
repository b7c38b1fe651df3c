"""Model calls of a turn, observed from outside its conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Unpack

from ...modules.calls.completion import Completion
from ...modules.calls.growing_text import TextListeners
from ...modules.calls.messages import PLAIN_TEXT, CallOptions, Message
from ...modules.calls.usage import CallMeter, CallRecord
from ...modules.judge.contract import AnyJudge
from ...modules.judge.wrapper import wrapped
from ...modules.llm.contract import ChatWrapper

_NOTED: ContextVar[list[CallRecord] | None] = ContextVar("record_calls", default=None)


class RecordingLLM(ChatWrapper):
    """A chat model that notes its calls for ``record_calls``."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        """Make a chat call and note it."""
        with _noting(meter):
            return await self._inner.complete(messages, meter=meter, options=options, **listeners)


def noted_judge(inner: AnyJudge) -> AnyJudge:
    """Return a judge that notes its calls for ``record_calls``."""
    return wrapped(inner, around=_noting)


@contextmanager
def _noting(meter: CallMeter) -> Iterator[None]:
    before = len(meter.records)
    try:
        yield
    finally:
        noted = _NOTED.get()
        if noted is not None:
            noted.extend(meter.records[before:])


@contextmanager
def record_calls() -> Iterator[list[CallRecord]]:
    """Collect the records of calls by this task and those that it starts; concurrent calls may be recorded twice.

    Calls of other tasks, which answer other turns, are left out.
    """
    noted: list[CallRecord] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)
