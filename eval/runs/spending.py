"""What a run has paid so far, in calls, tokens and money, against what it may."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...graphs.systems.registry import SYSTEMS
from ...modules.calls.journal import BOOKED_TO, JournaledCall
from ...modules.calls.prices import FILE_NAME, FREE, UNKNOWN, Cost, Prices, usage_by_model
from ...modules.calls.record import CallKind, CallRecord
from ...modules.errors import RunLimitReached, SettingsError
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
