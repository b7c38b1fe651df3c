"""Model calls made under the journal: noted before they are made, replies saved before they are used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from ..errors import ModelCallError
from .completion import Completion
from .growing_text import Listeners
from .journal import CallSlot
from .kept import KeptCall
from .messages import CallOptions, Message
from .record import INTERRUPTED, CallRecord
from .tokens import message_tokens, text_tokens
from .usage import CallMeter

LIKELY_COMPLETION_TOKENS = 256
"""Expected tokens of a reply of unknown length."""


async def complete_journaled(
    call: Callable[[CallMeter], Awaitable[Completion]],
    messages: Sequence[Message],
    options: CallOptions,
    *,
    model: str,
    request: bytes,
    meter: CallMeter,
    listeners: Listeners,
) -> Completion:
    """Return the journal's reply to a call, at no cost, or make the call once and journal its reply.

    The meter gets the record of the call from when it was made, and the records of interrupted tries. Tokens that the
    endpoint does not report are estimated, and marked as estimates.

    Args:
        call: Makes the call, with its retries. Its meter is for this call alone, is already reserved, and has
            ``about_to_send`` to be awaited before the first request.
        messages: The prompt, for estimates.
        options: Options of the call, for estimates.
        model: Name of the model.
        request: ``call_key`` of the call.
        meter: Meter of the node that makes the call.
        listeners: Receive a reply from the journal; ``call`` serves them for a reply of its own.

    Raises:
        BudgetSpent: The tree may make no more calls; none was made.
        ModelCallError: The endpoint failed after the last attempt, or refused the call.
        SettingsError: The journal cannot be written; no call was made.
    """
    slot = meter.claim(request)
    if slot is not None:
        meter.records.extend(slot.call.interrupted)
        if (kept := slot.call.kept) is not None:  # counted in the tree's budget since the run began
            meter.records.append(kept.record)
            completion = kept.completion
            meter.transcribe(messages, options, completion)
            listeners.settle(text=completion.text, thinking=completion.thinking)
            return completion
    meter.reserve()
    begin = None if slot is None else partial(_begin, slot, messages, options, model, meter)
    own = CallMeter(node=meter.node, chunk_id=meter.chunk_id, begin=begin)
    try:
        completion = await call(own)
    except ModelCallError:
        if slot is not None:
            await slot.calls.journal.drop(slot.key)
        meter.records.extend(own.records)
        meter.transcribe(messages, options, None)
        raise
    record = _counted(own.records[-1], messages, completion)
    if slot is not None:
        await slot.calls.journal.keep(slot.key, KeptCall(completion=completion, record=record))
    meter.records.append(record)
    meter.transcribe(messages, options, completion)
    return completion


async def _begin(
    slot: CallSlot, messages: Sequence[Message], options: CallOptions, model: str, meter: CallMeter
) -> None:
    if slot.calls.transcripts is not None:
        # So that a killed process has the texts of all calls that were followed by another one.
        await slot.calls.transcripts.flush()
    estimate = expected_record(messages, options, model=model, meter=meter, call_id=slot.key.hex()[:32])
    await slot.calls.journal.begin(slot.key, slot.calls.root, slot.calls.booked_to, estimate)


def expected_record(
    messages: Sequence[Message], options: CallOptions, *, model: str, meter: CallMeter, call_id: str = ""
) -> CallRecord:
    """Return the estimated usage of a call as the record of an interrupted call."""
    likely = min(options.max_tokens or LIKELY_COMPLETION_TOKENS, LIKELY_COMPLETION_TOKENS)
    return CallRecord(
        call_id=call_id,
        kind="chat",
        node=meter.node,
        chunk_id=meter.chunk_id,
        model=model,
        prompt_tokens=message_tokens(messages),
        completion_tokens=likely,
        estimated=True,
        seconds=0.0,
        attempts=1,
        cached=False,
        cut_off=False,
        error=INTERRUPTED,
    )


def _counted(record: CallRecord, messages: Sequence[Message], completion: Completion) -> CallRecord:
    """Return the record with the tokens that the endpoint reported, or else with estimates."""
    if record["prompt_tokens"] or record["completion_tokens"]:
        return record
    written = text_tokens(completion.text) + text_tokens(completion.thinking)
    counts = {"prompt_tokens": message_tokens(messages), "completion_tokens": written, "estimated": True}
    return CallRecord(**{**record, **counts})  # type: ignore[typeddict-item]
