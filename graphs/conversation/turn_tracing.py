"""Sends the trace of a turn, however the turn ends; costs nothing where the settings want no traces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from ...modules.calls.record import recorded_now
from ...modules.errors import JudgetreeError
from ..rag.telemetry import TelemetrySender
from .services import ConversationServices
from .started_turn import Outcome, StartedTurn
from .turn_trace import TracedTurn, trace_of_turn

logger = logging.getLogger(__name__)

_CANCELLED = "The question was cancelled."


async def traced(
    services: ConversationServices,
    started: StartedTurn,
    answer: Callable[[], Awaitable[Outcome]],
    read_unfinished: Callable[[str], Awaitable[Outcome]],
) -> Outcome:
    """Return the outcome of ``answer``, and send its trace; errors go through once their trace is on its way.

    ``read_unfinished`` reads what a turn without an answer has so far, and is given the error.

    Raises:
        DependencyError: The extra ``telemetry`` is wanted and not installed.
    """
    sender, started_s = services.session.open_sender(), recorded_now()
    if sender is None:
        return await answer()
    send = partial(_send, sender, services, started, started_s)
    try:
        outcome = await answer()
    except asyncio.CancelledError:
        await _send_unfinished(send, read_unfinished, _CANCELLED, status="cancelled")
        raise
    except Exception as failure:
        words = str(failure) if isinstance(failure, JudgetreeError) else type(failure).__name__
        await _send_unfinished(send, read_unfinished, words, status="failed")
        raise
    send(outcome, status=outcome.saved["status"] if outcome.saved else "failed")
    return outcome


async def _send_unfinished(
    send: Callable[..., None], read: Callable[[str], Awaitable[Outcome]], error: str, *, status: str
) -> None:
    try:
        send(await read(error), status=status)
    except Exception as failure:  # noqa: BLE001 - the error of the turn matters more than its trace
        logger.warning("The trace of a turn was not sent: %s", failure)


def _send(
    sender: TelemetrySender,
    services: ConversationServices,
    started: StartedTurn,
    started_s: float,
    outcome: Outcome,
    *,
    status: str,
) -> None:
    turn, saved = started.turn, outcome.saved
    finished = TracedTurn(
        conversation_id=started.state["conversation_id"],
        turn_id=turn["turn_id"],
        resumed=started.resumed,
        query=turn["query"],
        answer=saved["answer"] if saved else "",
        status=status,
        answered_from=saved["answered_from"] if saved else "",
        error=outcome.error,
        tree=outcome.tree,
        calls=outcome.calls,
        usage=outcome.usage,
        started_ns=int(started_s * 1e9),
        ended_ns=int(recorded_now() * 1e9),
    )
    make = partial(trace_of_turn, finished, services.rag.transcripts, services.settings.home)
    sender.send_trace(make, of=f"the turn {turn['turn_id']}")
