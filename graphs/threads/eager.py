"""The judge calls of one query, of which a stop may cancel those that have not begun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, cast

from ...modules.calls.journal import ThreadCalls
from ...modules.calls.usage import CallMeter
from ..search.findings import Findings
from ..search.stop import Stop

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

JUDGE = "judge"
"""Name of the node that judges one chunk."""


class Withdrawn(Exception):
    """A judge call was cancelled before it began."""


class JudgeCalls:
    """The judge calls of one query.

    Which calls a verdict finds unbegun depends on timing. So that a resumed search decides as before, a verdict that
    was saved still closes the query, and a call that was noted in the journal still counts as begun.
    """

    def __init__(self) -> None:
        self._is_closed = False
        self._waiting: dict[asyncio.Timeout, CallMeter] = {}

    def restore(self, saved: StateSnapshot, stop: Stop) -> None:
        """Note the verdicts that an earlier run of the thread saved."""
        if not stop.eager:
            return
        for task in saved.tasks:
            patches = (task.result or {}).get("similar_chunks", ()) if task.name == JUDGE else ()
            for patch in patches:
                changes = patch["changes"]
                self.judged(changes.get("score"), changes.get("score_confidence"), stop)

    def judged(self, score: object, confidence: object, stop: Stop) -> None:
        """Take a verdict; one that closes the query cancels the calls that have not begun."""
        if not stop.eager or score != 2:
            return
        sureness = 1.0 if confidence is None else float(cast(float, confidence))
        if not stop.closes(Findings(p_sufficient_chunk=sureness)):
            return
        self._is_closed = True
        for scope in self._waiting:
            scope.reschedule(asyncio.get_running_loop().time())

    def cancellable(self, meter: CallMeter, stop: Stop) -> AbstractAsyncContextManager[None]:
        """Cancel what is inside, if the query is closed before its first request is sent.

        Raises:
            Withdrawn: It was cancelled.
        """
        if not stop.eager or _has_begun(meter.calls, meter.chunk_id):
            return nullcontext()
        return self._cancelled_if_closed(meter)

    @asynccontextmanager
    async def _cancelled_if_closed(self, meter: CallMeter) -> AsyncIterator[None]:
        if self._is_closed:
            raise Withdrawn
        try:
            async with asyncio.timeout(None) as scope:
                self._waiting[scope] = meter

                async def sending() -> None:
                    if self._is_closed:  # it is being cancelled
                        await asyncio.Event().wait()
                    self._waiting.pop(scope, None)

                meter.sending = sending
                try:
                    yield
                finally:
                    self._waiting.pop(scope, None)
        except TimeoutError:
            if not scope.expired():
                raise
            raise Withdrawn from None


def _has_begun(calls: ThreadCalls | None, chunk_id: str) -> bool:
    """Return whether an earlier run has sent a call for a chunk."""
    estimates: Sequence[object] = () if calls is None else [each.estimate for each in calls.known.values()]
    return any(each and (each["node"], each["chunk_id"]) == (JUDGE, chunk_id) for each in estimates)  # type: ignore[index]
