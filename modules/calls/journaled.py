"""Model calls made under the journal: noted before they are made, replies saved before they are used."""

from __future__ import annotations

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from ..errors import BudgetSpent, ModelCallError
from .completion import Completion
from .growing_text import Listeners, TextListeners
from .journal import CallSlot
from .kept import KeptCall
from .ledger import LIKELY_COMPLETION_TOKENS, Amount, Ledger
from .messages import PLAIN_TEXT, CallOptions, Message, call_key
from .record import CANCELLED, INTERRUPTED, TAKEN_FREELY, CallRecord
from .tokens import message_tokens, text_tokens
from .usage import CallMeter


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
            BudgetSpent: The tree may make no more calls, and none was made; or its time was over during the call.
            ModelCallError: The endpoint failed after the last attempt, or refused the call.
            SettingsError: The journal cannot be written; no call was made.
        """
        receivers = Listeners(**listeners)
        slot = meter.claim(call_key(self.endpoint, self.model, messages, options))
        if slot is not None:
            meter.records.extend(slot.call.interrupted)
            if (kept := slot.call.kept) is not None:
                meter.replay(kept.record)
                completion = kept.completion
                meter.transcribe(messages, options, completion)
                receivers.settle(text=completion.text, thinking=completion.thinking)
                return completion
        reserved = await meter.reserve_amount(partial(amount_of_call, messages, options, self.model))
        sending = _Sending(slot, messages, options, self.model, meter)
        own = CallMeter(node=meter.node, chunk_id=meter.chunk_id, begin=sending.begin)
        try:
            async with meter.in_time(reserved):
                completion = await self._call(messages, own, options, receivers)
        except ModelCallError:
            meter.settle(reserved, own.records[-1] if own.records else sending.expected)
            if slot is not None:
                await slot.calls.journal.drop(slot.key)
            meter.records.extend(own.records)
            meter.transcribe(messages, options, None)
            raise
        except (asyncio.CancelledError, BudgetSpent):
            meter.settle(reserved, sending.cut_off())
            raise
        except BaseException:
            meter.settle(reserved, sending.expected if sending.has_begun else None)
            raise
        record = _counted(own.records[-1], messages, completion)
        meter.settle(reserved, record)
        if slot is not None:
            taken = reserved.taken or TAKEN_FREELY
            kept = KeptCall(completion=completion, record=record, taken=taken, run=slot.calls.run)
            await slot.calls.journal.keep(slot.key, kept)
        meter.records.append(record)
        meter.transcribe(messages, options, completion)
        return completion


def amount_of_call(messages: Sequence[Message], options: CallOptions, model: str, ledger: Ledger) -> Amount:
    """Return what a call may use: its prompt, by estimate, and the longest reply."""
    return ledger.of_call(model, message_tokens(messages), options.max_tokens or LIKELY_COMPLETION_TOKENS)


@dataclass
class _Sending:
    """What happens before the first request of a call."""

    slot: CallSlot | None
    messages: Sequence[Message]
    options: CallOptions
    model: str
    meter: CallMeter
    has_begun: bool = False

    async def begin(self) -> None:
        """Journal the call, unless it is held back."""
        if self.meter.sending is not None:
            await self.meter.sending()
        self.has_begun = True
        if self.slot is not None:
            await _begin(self.slot, self.messages, self.options, self.model, self.meter)

    @property
    def expected(self) -> CallRecord:
        """The usage that the call is expected to have."""
        return expected_record(self.messages, self.options, model=self.model, meter=self.meter)

    def cut_off(self) -> CallRecord | None:
        """Record a call that was cancelled while it was made; None for one that was not sent."""
        if not self.has_begun:
            return None
        # As the journal names this try, so that a resumed run or a reading of the journal does not count it again.
        call_id = f"{id_in_journal(self.slot)}-{self.slot.call.lost}" if self.slot else uuid.uuid4().hex
        cancelled = {"call_id": call_id, "error": CANCELLED}
        self.meter.records.append(CallRecord(**{**self.expected, **cancelled}))  # type: ignore[typeddict-item]
        return self.meter.records[-1]


async def _begin(
    slot: CallSlot, messages: Sequence[Message], options: CallOptions, model: str, meter: CallMeter
) -> None:
    if slot.calls.transcripts is not None:
        # So that a killed process has the texts of all calls that were followed by another one.
        await slot.calls.transcripts.flush()
    estimate = expected_record(messages, options, model=model, meter=meter, call_id=id_in_journal(slot))
    await slot.calls.journal.begin(slot.key, slot.calls.root, slot.calls.booked_to, estimate)


def id_in_journal(slot: CallSlot) -> str:
    """Return what the ids of the interrupted tries of a call begin with."""
    return slot.key.hex()[:32]


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
