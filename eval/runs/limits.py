"""When a run stops: its limits of calls, tokens and money, and endpoints that can serve nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...graphs.systems.registry import SYSTEMS
from ...modules.calls.completion import Completion
from ...modules.calls.growing_text import TextListener
from ...modules.calls.journal import BOOKED_TO, JournaledCall
from ...modules.calls.journaled import expected_record
from ...modules.calls.messages import PLAIN_TEXT, CallOptions, Message, call_key
from ...modules.calls.prices import FILE_NAME, FREE, UNKNOWN, Cost, Prices, usage_by_model
from ...modules.calls.record import CallKind, CallRecord
from ...modules.calls.usage import CallMeter
from ...modules.errors import BudgetSpent, ModelCallError, ModelSetupError, RunLimitReached, SettingsError
from ...modules.llm.endpoint import ChatLLM
from ...modules.settings import Settings, without_secrets
from ..rows.store import RunRow
from .experiment import RETRIEVING, Experiment


@dataclass(frozen=True, kw_only=True)
class Amount:
    """Chat calls, their tokens, and what they and others cost."""

    calls: int = 0
    tokens: int = 0
    cost: Cost = FREE

    def __add__(self, other: Amount) -> Amount:
        return Amount(calls=self.calls + other.calls, tokens=self.tokens + other.tokens, cost=self.cost + other.cost)

    def at_least(self, other: Amount) -> Amount:
        """The greater of both in each respect."""
        cost = other.cost if other.cost.known_usd > self.cost.known_usd else self.cost
        return Amount(calls=max(self.calls, other.calls), tokens=max(self.tokens, other.tokens), cost=cost)


_NOTHING = Amount()


class Spending:
    """The ledger of a run: what its questions have paid, and what the calls in flight are expected to.

    A call is reserved before it is made, and settled after. One that does not fit in what is left waits for those in
    flight, since they may take less than was expected; when none is in flight any more, the limit is reached. So a
    limit is exceeded only by what calls use beyond their estimates. It is of one process: others that share the run are
    seen by their rows. Use it on judgetree's own loop.
    """

    def __init__(self, experiment: Experiment, attempts: Iterable[RunRow] = (), *, prices: Prices) -> None:
        """``attempts``: what was asked before, which counts too."""
        self._limits = {
            "max_calls": experiment.max_calls,
            "max_tokens": experiment.max_tokens,
            "max_cost": experiment.max_cost,
        }
        self._prices = prices
        self._rows = _NOTHING
        self._open: dict[str, Amount] = {}
        """What questions have paid that have no row yet, by their threads."""
        self._in_flight: dict[object, Amount] = {}
        self._changed = asyncio.Condition()
        self._refused = ""
        for row in attempts:
            self.add(row)

    @property
    def cost(self) -> Cost:
        """Of everything until now, questions without a row included."""
        return self._spent.cost

    @property
    def exhausted(self) -> str:
        """The limit that is reached, as "max_calls=100"; ``""`` while there is none."""
        return self._refused or self._limit_below(self._spent, is_met=True)

    def add(self, row: RunRow) -> None:
        """Count what a question paid, by its row, in place of what was known of its calls before."""
        amount = Amount(calls=row.chat_calls, tokens=row.tokens, cost=cost_of_row(row, self._prices))
        self._rows += amount.at_least(self._open.pop(row.thread_id, _NOTHING))

    def recover(self, calls: Iterable[JournaledCall]) -> None:
        """Count the calls of questions that were cut off before they had a row."""
        for call in calls:
            for record in call.records:
                self._book(call.booked_to, self.amount_of(record))

    def amount_of(self, record: CallRecord) -> Amount:
        """What one call has taken; its tokens may be estimates."""
        tokens = record["prompt_tokens"] + record["completion_tokens"]
        return Amount(calls=1, tokens=tokens, cost=self._prices.cost_of(usage_by_model([record])))

    async def reserve(self, expected: Amount) -> object:
        """Set aside what a call is expected to take, as soon as that is within the limits; what ``settle`` needs.

        Raises:
            RunLimitReached: It will not be; the call must not be made.
        """
        async with self._changed:
            while limit := self._limit_in_the_way(expected):
                if not self._in_flight or self._refused:
                    self._refused = self._refused or limit
                    raise RunLimitReached(
                        f"The run has reached {self._refused}. The same command with a higher limit goes on."
                    )
                await self._changed.wait()
            place = object()
            self._in_flight[place] = expected
            return place

    async def settle(self, place: object, actual: Amount) -> None:
        """Put what a call took in the place of what was set aside for it."""
        async with self._changed:
            del self._in_flight[place]
            self._book(BOOKED_TO.get(), actual)
            self._changed.notify_all()

    @property
    def _spent(self) -> Amount:
        return sum(self._open.values(), self._rows)

    @property
    def _reserved(self) -> Amount:
        return sum(self._in_flight.values(), _NOTHING)

    def _limit_in_the_way(self, expected: Amount) -> str:
        if all(limit is None for limit in self._limits.values()):
            return ""
        return self._refused or self._limit_below(self._spent + self._reserved + expected)

    def _book(self, thread_id: str, amount: Amount) -> None:
        self._open[thread_id] = self._open.get(thread_id, _NOTHING) + amount

    def _limit_below(self, amount: Amount, *, is_met: bool = False) -> str:
        """The first limit that an amount exceeds, or with ``is_met`` also reaches; ``""`` if there is none."""
        of_limit = {"max_calls": amount.calls, "max_tokens": amount.tokens, "max_cost": amount.cost.known_usd}
        for name, limit in self._limits.items():
            if limit is not None and (of_limit[name] > limit or (is_met and of_limit[name] == limit)):
                return f"{name}={limit:g}"
        return ""


def cost_of_row(row: RunRow, prices: Prices) -> Cost:
    """What one question has cost; unknown for rows that were written before rows said what they had paid."""
    return UNKNOWN if row.paid is None else prices.cost_of(row.paid)


def uncached_cost_of_row(row: RunRow, prices: Prices) -> Cost:
    """What one question would have cost if no call had come out of the cache."""
    return UNKNOWN if row.paid is None else prices.cost_of(usage.as_if_uncached() for usage in row.paid)


def refuse_unpriced(experiment: Experiment, settings: Settings, prices: Prices) -> None:
    """Do nothing if the experiment has no ``max_cost``, or all models that it names have a price.

    Embedding and rerank endpoints do not tell their tokens: their part of the money is not counted, only named unknown.

    Raises:
        SettingsError: ``max_cost`` cannot be watched; the message names each model without a price.
    """
    if experiment.max_cost is None:
        return
    unpriced = [(kind, spec) for kind, spec in _models_of(experiment, settings) if prices.of(spec, kind) is None]
    if unpriced:
        named = ", ".join(dict.fromkeys(f"{kind} model {without_secrets(spec)!r}" for kind, spec in unpriced))
        raise SettingsError(
            f"max_cost={experiment.max_cost:g} cannot be watched, since the price of the {named} is unknown. "
            f'Write it into {settings.home / FILE_NAME}, such as [{unpriced[0][0]}."MODEL"] and below it '
            "prompt = 0.5 and completion = 1.5 (dollars per million tokens), or leave out max_cost."
        )


def _models_of(experiment: Experiment, settings: Settings) -> Iterator[tuple[CallKind, str]]:
    yield "chat", settings.llm_spec
    if any(SYSTEMS[system].judges for system in experiment.systems):
        yield "chat", settings.judge_spec
    if not RETRIEVING.intersection(experiment.systems):
        return
    if settings.embeddings != "auto" and experiment.search_type != "sparse":
        yield "embedding", settings.embeddings
    reranker = (experiment.ranker_params or {}).get("model")
    if experiment.ranker_type == "model" and isinstance(reranker, str):
        yield "rerank", reranker


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


MIN_ASKED = 10
"""Fewer questions make no share."""


class SetupFailures:
    """Counts questions that failed by a ``ModelSetupError``, in a row or as a share of those asked."""

    def __init__(self, fail_after: float) -> None:
        """``fail_after``: from 1 on, a number of questions in a row; below 1, a share of the questions asked."""
        self._fail_after = fail_after
        self._asked = self._failed = self._in_a_row = 0
        self._reason = ""

    def add(self, row: RunRow) -> None:
        """Count a question that was asked; rows are added in the order in which they are finished."""
        self._asked += 1
        self._failed += row.setup_failed
        self._in_a_row = self._in_a_row + 1 if row.setup_failed else 0
        self._reason = row.error if row.setup_failed else self._reason

    @property
    def is_reached(self) -> bool:
        """Whether no further question is to be asked."""
        if self._fail_after >= 1:
            return self._in_a_row >= self._fail_after
        return self._asked >= MIN_ASKED and self._failed >= self._fail_after * self._asked

    def refuse(self) -> None:
        """Do nothing unless the limit is reached, or not a single question could be asked.

        Raises:
            ModelSetupError: With what the last of them had said.
        """
        if self.is_reached or 0 < self._failed == self._asked:
            raise ModelSetupError(
                f"Stopped: {self._failed} of {self._asked} questions could not be asked. The last one: {self._reason} "
                "Finished rows are kept; once that is mended, the same command asks the others and these again."
            )
