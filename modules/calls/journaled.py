"""Model calls made under the journal: noted before they are made, replies saved before they are used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Unpack

from ..errors import ModelCallError
from .completion import Completion
from .growing_text import Listeners, TextListeners
from .journal import CallSlot
from .kept import KeptCall
from .messages import PLAIN_TEXT, CallOptions, Message, call_key
from .record import INTERRUPTED, CallRecord
from .tokens import message_tokens, text_tokens
from .usage import CallMeter

LIKELY_COMPLETION_TOKENS = 256
"""Expected tokens of a reply of unknown length."""


class JournaledLLM(ABC):
    """A chat model whose calls are noted before they are made, and whose replies are saved before they are used."""

    @property
    @abstractmethod
    def model(self) -> str:
        """Name of the model in fingerprints and records."""

    @property
    @abstractmethod
    def endpoint(self) -> str:
        """Name of its endpoint in caches, without user, password or key."""

    @abstractmethod
    async def _call(
        self, messages: Sequence[Message], meter: CallMeter, options: CallOptions, listeners: Listeners
    ) -> Completion:
        """Make a call, with its retries.

        ``meter`` is for this call alone, is already reserved, and has ``about_to_send`` to be awaited before the first
        request.
        """

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        """Return the journal's reply to a call, at no cost, or make the call once and journal its reply.

        Arguments as for ``ChatLLM.complete``. The meter gets the record of the call from when it was made, and the
        records of interrupted tries. Tokens that the endpoint does not report are estimated, and marked as estimates.

        Raises:
            BudgetSpent: The tree may make no more calls; none was made.
            ModelCallError: The endpoint failed after the last attempt, or refused the call.
            SettingsError: The journal cannot be written; no call was made.
        """
        receivers = Listeners(**listeners)
        slot = meter.claim(call_key(self.endpoint, self.model, messages, options))
        if slot is not None:
            meter.records.extend(slot.call.interrupted)
            if (kept := slot.call.kept) is not None:  # counted in the tree's budget since the run began
                meter.records.append(kept.record)
                completion = kept.completion
                meter.transcribe(messages, options, completion)
                receivers.settle(text=completion.text, thinking=completion.thinking)
                return completion
        meter.reserve()
        begin = None if slot is None else partial(_begin, slot, messages, options, self.model, meter)
        own = CallMeter(node=meter.node, chunk_id=meter.chunk_id, begin=begin)
        try:
            completion = await self._call(messages, own, options, receivers)
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
