"""Model calls within the limits of a run."""

from __future__ import annotations

from collections.abc import Sequence

from ...modules.calls.completion import Completion
from ...modules.calls.growing_text import TextListener
from ...modules.calls.journaled import expected_record
from ...modules.calls.messages import Message
from ...modules.calls.options import PLAIN_TEXT, CallOptions, call_key
from ...modules.calls.record import CallRecord
from ...modules.calls.usage import CallMeter
from ...modules.errors import BudgetSpent, ModelCallError
from ...modules.llm.endpoint import ChatLLM
from .spending import Amount, Spending


class LimitedLLM:
    """A chat model whose calls a run pays for: each is reserved before it is made, and settled after.

    A reply that comes from the journal was paid for before, and needs no reservation.
    """

    def __init__(self, inner: ChatLLM, spending: Spending, *, endpoint: str, billed_as: str) -> None:
        """``billed_as``: the model as prices name it."""
        self._inner = inner
        self._spending = spending
        self._endpoint = endpoint
        self._billed_as = billed_as

    @property
    def model(self) -> str:
        """The inner model's name."""
        return self._inner.model

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        on_text: TextListener | None = None,
        on_thinking: TextListener | None = None,
    ) -> Completion:
        """See ``ChatLLM.complete``.

        Raises:
            RunLimitReached: The run may make no more calls; none was made.
        """

        async def call() -> Completion:
            return await self._inner.complete(
                messages, meter=meter, options=options, on_text=on_text, on_thinking=on_thinking
            )

        if meter.holds(lambda: call_key(self._endpoint, self.model, messages, options)):
            return await call()
        expected = expected_record(messages, options, model=self._billed_as, meter=meter)
        place = await self._spending.reserve(self._spending.amount_of(expected))
        taken: CallRecord | None = expected  # of a call that is cancelled
        try:
            completion = await call()
            taken = meter.records[-1]
        except ModelCallError:
            taken = meter.records[-1]
            raise
        except BudgetSpent:
            taken = None
            raise
        finally:
            await self._settle(place, taken)
        return completion

    async def _settle(self, place: object, taken: CallRecord | None) -> None:
        amount = (
            Amount() if taken is None else self._spending.amount_of(CallRecord(**{**taken, "model": self._billed_as}))
        )
        await self._spending.settle(place, amount)
