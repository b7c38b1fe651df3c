"""Model calls made under the journal: noted before they are made, replies saved before they are used."""

from __future__ import annotations

import asyncio
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Unpack

from langchain_core.messages.ai import UsageMetadata

from ..caveats.kinds import CaveatKind
from ..caveats.prompt_cuts import PromptBounds, least_tokens
from ..errors import BudgetSpent, ModelCallError
from .completion import Completion
from .growing_text import Listeners, TextListeners
from .journal import JournalEntry
from .kept import CallResult
from .ledger import LIKELY_COMPLETION_TOKENS, SpendLimits
from .messages import PLAIN_TEXT, CallOptions, Message, call_key, texts_of
from .record import CANCELLED, INTERRUPTED, NOTHING, UNRESERVED, CallRecord, Spend, counted_tokens
from .reported_usage import cached_tokens_in
from .tokens import message_tokens, text_tokens
from .usage import CallMeter, Reserved

logger = logging.getLogger(__name__)

_FAR_TOO_FEW = 2
"""Times that the fewest tokens of texts may exceed the reported ones: what texts have at least is a rule of thumb."""
_LONGEST_REASON = 300
"""Characters of a refusal that a record keeps, as of an error."""


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

        ``meter`` is for this call alone, is already reserved, and has ``about_to_send`` to be awaited before each
        request. A failed attempt that may be billed is recorded and booked (``book_failed``) before ``admit_again`` is
        awaited for the next, where no slot is held.
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
        records of interrupted tries and of failed attempts that may be billed. Tokens that the endpoint does not
        report are estimated, and marked as estimates.

        Raises:
            BudgetSpent: The tree may make no more calls, and none was made; or its time was over during the call.
            RunLimitReached: The limits of the run allow no call.
            ModelCallError: The endpoint failed after the last attempt, or refused the call.
            SettingsError: The journal cannot be written; no call was made.
        """
        receivers = Listeners(**listeners)
        slot = meter.claim(call_key(self.endpoint, self.model, messages, options))
        if slot is not None:
            meter.records.extend((*slot.failed, *slot.call.interrupted))
            if (kept := slot.call.kept) is not None:
                meter.replay(kept.record)
                completion = kept.completion
                meter.transcribe(messages, options, completion)
                receivers.settle(text=completion.text, thinking=completion.thinking)
                return completion
        call = _Call(slot, messages, options, self.model, meter)
        await call.admit()
        own = CallMeter(node=meter.node, chunk_id=meter.chunk_id, books=call, payer=None)
        try:
            async with call.in_time():
                completion = await self._call(messages, own, options, receivers)
        except ModelCallError:
            await call.failed(own.records)
            raise
        except (asyncio.CancelledError, BudgetSpent):
            await call.cut_off()
            raise
        except BaseException:
            await call.broken()
            raise
        record = _with_caveats(own.records[-1], messages, options, completion, self._bounds)
        record = _counted(record, messages, completion)
        self._tell_of_unreported(record)
        await call.answered(record, completion)
        return completion

    _has_told = False

    def _tell_of_unreported(self, record: CallRecord) -> None:
        """Warn once of an endpoint that reports fewer tokens than the texts of a call have."""
        told, counted = record["prompt_tokens"] + record["completion_tokens"], sum(counted_tokens(record))
        if counted > told and not self._has_told:
            self._has_told = True
            logger.warning(
                "Model %r at %s reports %d tokens for a call whose texts have at least %d; limits count the latter, "
                "here and from now on.",
                self.model,
                self.endpoint,
                told,
                counted,
            )

    @cached_property
    def _bounds(self) -> PromptBounds:
        return PromptBounds()


def amount_of_call(messages: Sequence[Message], options: CallOptions, model: str, ledger: SpendLimits) -> Spend:
    """Return what a call may use: its prompt, by estimate, and the longest reply."""
    return ledger.of_call(model, message_tokens(messages), options.max_tokens or LIKELY_COMPLETION_TOKENS)


@dataclass
class _Call:
    """One call: admits its attempts within the limits of tree and payer, and books each that may be billed.

    This is the one place where limits are asked. An attempt is reserved before it is sent, in the tree first, and
    settled by its record: what the endpoint reported, or else an estimate. A call whose attempts were all refused
    counts as one call without tokens.
    """

    slot: JournalEntry | None
    messages: Sequence[Message]
    options: CallOptions
    model: str
    meter: CallMeter
    has_begun: bool = False
    is_sent: bool = False
    """Whether an attempt was sent and its outcome is not known yet."""
    reserved: Reserved | None = None
    """The reservation of the attempt that is made; None after an attempt was booked."""
    place: object = None
    """What the payer gave for it."""
    booked: int = 0
    """Number of attempts that were booked."""

    async def admit(self) -> None:
        """Reserve the next attempt unless one is reserved, in the tree and then with the payer.

        Raises:
            BudgetSpent: The tree, or a question's payer, allows none.
            RunLimitReached: The run does not.
        """
        if self.reserved is not None:
            return
        meter, payer = self.meter, self.meter.payer
        reserved = await meter.reserve_amount(partial(amount_of_call, self.messages, self.options, self.model))
        if payer is not None:
            is_answer = reserved.taken is not None and bool(reserved.taken.held_by)
            try:
                self.place = await payer.reserve(payer.spend_of(self.expected), is_answer=is_answer)
            except BaseException:
                meter.settle(reserved, None)
                raise
        self.reserved = reserved

    def in_time(self) -> AbstractAsyncContextManager[None]:
        """Return what cancels the call once the time of the tree is over."""
        assert self.reserved is not None
        return self.meter.in_time(self.reserved)

    async def begin(self) -> None:
        """Journal the call, unless it is held back; only the first attempt does."""
        if self.has_begun:
            self.is_sent = True
            return
        if self.meter.sending is not None:
            await self.meter.sending()
        self.has_begun = self.is_sent = True
        if self.slot is not None:
            await _begin(self.slot, self.messages, self.options, self.model, self.meter)

    async def book(self, record: CallRecord) -> None:
        """Book an attempt that failed and may be billed, at once, so that it counts whatever follows."""
        self.booked += 1
        await self._append(record if self.slot is None else self.slot.add_failure(record))
        self.meter.transcribe(self.messages, self.options, None)
        if self.slot is not None:
            await self.slot.save_failure()

    def refused(self) -> None:
        """Note that nothing is in flight; what is reserved is for the next attempt."""
        self.is_sent = False

    async def failed(self, records: Sequence[CallRecord]) -> None:
        """Book what the attempts of a call without a reply have left, and let the journal make it again."""
        left = records[self.booked :]
        for record in left:
            if record["prompt_tokens"] or record["completion_tokens"]:
                await self.book(record)
            else:
                await self._append(record)
                self.meter.transcribe(self.messages, self.options, None)
        if not left:
            await self._settle(None if self.booked else self.expected)
        await self._drop()

    async def cut_off(self) -> None:
        """Book an attempt that was cancelled while it was made, by an estimate; nothing where none was in flight."""
        if not self.is_sent or self.reserved is None:
            await self._settle(None)
            if self.has_begun:  # in the wait for a further attempt
                await self._drop()
            return
        # As the journal names this try, so that a resumed run or a reading of the journal does not count it again.
        call_id = f"{id_in_journal(self.slot)}-{self.slot.call.lost}" if self.slot else uuid.uuid4().hex
        cancelled = {"call_id": call_id, "error": CANCELLED}
        await self._append(CallRecord(**{**self.expected, **cancelled}))  # type: ignore[typeddict-item]

    async def broken(self) -> None:
        """Settle a call that ended with an error of another kind."""
        is_open = self.is_sent and self.reserved is not None
        await self._settle(self.expected if is_open else None)
        if self.has_begun and not is_open:
            await self._drop()

    async def answered(self, record: CallRecord, completion: Completion) -> None:
        """Book the attempt that gave the reply, after the journal has it."""
        taken = (self.reserved.taken if self.reserved else None) or UNRESERVED
        await self._settle(record)
        if (slot := self.slot) is not None:
            kept = CallResult(completion=completion, record=record, taken=taken, run=slot.calls.run)
            await slot.calls.journal.keep(slot.key, slot.calls.root, kept)
        self.meter.records.append(record)
        self.meter.transcribe(self.messages, self.options, completion)

    @property
    def expected(self) -> CallRecord:
        """The usage that an attempt is expected to have."""
        return expected_record(self.messages, self.options, model=self.model, meter=self.meter)

    async def _append(self, record: CallRecord) -> None:
        self.meter.records.append(record)
        await self._settle(record)

    async def _settle(self, record: CallRecord | None) -> None:
        """Replace what is reserved by the usage of an attempt; None gives it back, since none was made."""
        reserved, place, payer = self.reserved, self.place, self.meter.payer
        self.reserved = self.place = None
        if reserved is not None:
            self.meter.settle(reserved, record)
        if payer is not None and place is not None:
            await payer.settle(place, NOTHING if record is None else payer.spend_of(record))

    async def _drop(self) -> None:
        if self.slot is not None:
            await self.slot.calls.journal.drop(self.slot.key, self.slot.calls.root)


def expected_usage(
    told: UsageMetadata | None, messages: Sequence[Message], options: CallOptions
) -> tuple[UsageMetadata, bool]:
    """Return the usage of a failed attempt, and whether it is an estimate, as it is where too little is reported."""
    if told is not None and (told["input_tokens"] or told["output_tokens"]):
        prompt, completion = told["input_tokens"], told["output_tokens"]
        if not (missing := _missing(prompt + cached_tokens_in(told), texts_of(messages))):
            return told, False
        prompt += missing
        return UsageMetadata(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion), True
    prompt, completion = message_tokens(messages), _likely_tokens(options)
    return UsageMetadata(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion), True


async def _begin(
    slot: JournalEntry, messages: Sequence[Message], options: CallOptions, model: str, meter: CallMeter
) -> None:
    if slot.calls.transcripts is not None:
        # So that a killed process has the texts of all calls that were followed by another one.
        await slot.calls.transcripts.flush()
    estimate = expected_record(messages, options, model=model, meter=meter, call_id=id_in_journal(slot))
    await slot.calls.journal.begin(slot.key, slot.calls.root, slot.calls.account, estimate)


def id_in_journal(slot: JournalEntry) -> str:
    """Return what the ids of the interrupted tries of a call begin with."""
    return slot.key.hex()[:32]


def expected_record(
    messages: Sequence[Message], options: CallOptions, *, model: str, meter: CallMeter, call_id: str = ""
) -> CallRecord:
    """Return the estimated usage of a call as the record of an interrupted call."""
    return CallRecord(
        call_id=call_id,
        kind="chat",
        node=meter.node,
        chunk_id=meter.chunk_id,
        model=model,
        prompt_tokens=message_tokens(messages),
        completion_tokens=_likely_tokens(options),
        estimated=True,
        seconds=0.0,
        attempts=1,
        cached=False,
        cut_off=False,
        error=INTERRUPTED,
    )


def _likely_tokens(options: CallOptions) -> int:
    return min(options.max_tokens or LIKELY_COMPLETION_TOKENS, LIKELY_COMPLETION_TOKENS)


def _with_caveats(
    record: CallRecord, messages: Sequence[Message], options: CallOptions, completion: Completion, bounds: PromptBounds
) -> CallRecord:
    """Return the record with what makes the reply worse than it looks, besides what it has already."""
    cached = record.get("cached_prompt_tokens", 0)
    found: list[CaveatKind] = [*record.get("caveats", ()), *completion.caveats]
    if bounds.is_cut(record["prompt_tokens"], texts_of(messages), cached=cached):
        found.append("prompt_cut")
    if options.is_shortened:
        found.append("prompt_shortened")
    if not found:
        return record
    marked = CallRecord(**{**record, "caveats": list(dict.fromkeys(found))})
    if completion.refusal:
        marked["refusal"] = completion.refusal[:_LONGEST_REASON]
    return marked


def _missing(reported: int, texts: Sequence[str]) -> int:
    """Return the tokens that texts have at least beyond a reported number that is far too low for them; else 0."""
    least = least_tokens(texts)
    return least - reported if least > _FAR_TOO_FEW * reported else 0


def _counted(record: CallRecord, messages: Sequence[Message], completion: Completion) -> CallRecord:
    """Return the record with the tokens that the endpoint reported, or else with estimates.

    What the texts have at least beyond the reported tokens is noted apart, but for a prompt that the server cut.
    """
    if record["prompt_tokens"] or record["completion_tokens"]:
        known = record["prompt_tokens"] + record.get("cached_prompt_tokens", 0)
        is_whole = "prompt_cut" not in record.get("caveats", ())
        beyond = CallRecord(**record)
        if is_whole and (missing := _missing(known, texts_of(messages))):
            beyond["unreported_prompt_tokens"] = missing
        if missing := _missing(record["completion_tokens"], (completion.text,)):
            beyond["unreported_completion_tokens"] = missing
        return beyond
    written = text_tokens(completion.text) + text_tokens(completion.thinking)
    counts = {"prompt_tokens": message_tokens(messages), "completion_tokens": written, "estimated": True}
    return CallRecord(**{**record, **counts})  # type: ignore[typeddict-item]
