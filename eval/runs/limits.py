"""Limits that stop a run: calls, tokens, money, and unusable endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Unpack

from ...graphs.config.variants import system_name
from ...graphs.systems.registry import find_system, retrieves
from ...modules.calls.completion import Completion
from ...modules.calls.growing_text import TextListeners
from ...modules.calls.journal import ACCOUNT, JournaledCall
from ...modules.calls.messages import PLAIN_TEXT, CallOptions, Message
from ...modules.calls.prices import FILE_NAME, UNKNOWN, Cost, Prices
from ...modules.calls.record import NOTHING, CallKind, CallRecord, Spend
from ...modules.calls.reservations import Reservation, ReservationPool
from ...modules.calls.usage import CallMeter, Payer
from ...modules.errors import ModelSetupError, RunLimitReached, SettingsError
from ...modules.llm.contract import ChatLLM, ChatWrapper
from ...modules.llm.factory import priced_as
from ...modules.settings import Settings, without_secrets
from ..rows.payments import Payments
from ..rows.store import RunRow
from .experiment import Experiment


class SpendingLimits(Protocol):
    """Protocol of what may be spent: an experiment, or the options of scoring; None is no limit."""

    @property
    def max_calls(self) -> int | None:
        """Chat calls."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """Prompt and completion tokens of chat calls."""
        ...

    @property
    def max_cost(self) -> float | None:
        """US dollars."""
        ...


@dataclass(frozen=True)
class _NoLimits:
    max_calls: None = None
    max_tokens: None = None
    max_cost: None = None


NO_LIMITS: SpendingLimits = _NoLimits()
"""For a ledger that only counts."""


class Spending:
    """The ledger of a run: what its questions paid, and what the calls in flight are expected to cost.

    A call is reserved before it is made and settled after; ``ReservationPool`` says when one waits, and by how much a
    limit may be exceeded. The ledger covers one process; others that share the run are counted by their rows. Use it
    on judgetree's background loop.
    """

    def __init__(self, limits: SpendingLimits, attempts: Iterable[RunRow] = (), *, prices: Prices) -> None:
        """``attempts``: rows of earlier attempts, which count too."""
        self._limits = {
            "max_calls": limits.max_calls,
            "max_tokens": limits.max_tokens,
            "max_cost": limits.max_cost,
        }
        self._prices = prices
        self._payments: Payments | None = None
        self._before = self._rows = NOTHING
        self.made = NOTHING
        """What was settled here: the calls that this process has paid for."""
        self.elsewhere = NOTHING
        """What other runs have paid that count here too."""
        self._with_row: set[str] = set()
        """Threads of questions with a row."""
        self._open: dict[str, Spend] = {}
        """Payments of questions without a row, by thread."""
        self._in_flight = ReservationPool()
        self._noted: dict[Reservation, str] = {}
        """Ids of the payments in flight."""
        self._refused = ""
        for row in attempts:
            self.add(row)

    def count(self, paid: Spend) -> None:
        """Count what another run has paid, which the limits hold for too."""
        self._rows += paid
        self.elsewhere += paid

    @property
    def spent(self) -> Spend:
        """All calls so far, those of questions without a row included."""
        return sum(self._open.values(), self._rows)

    @property
    def cost(self) -> Cost:
        """Cost of all calls so far, those of questions without a row included."""
        return Cost.of(self.spent)

    def note_in(self, payments: Payments) -> None:
        """Count what earlier starts have paid, and note each attempt from now on, where no rows will count them.

        Raises:
            LoadingError: The payments are damaged.
        """
        self._payments, self._before = payments, payments.paid()
        self._rows += self._before

    @property
    def cost_now(self) -> Cost:
        """Cost of the calls of this start, where ``note_in`` has counted earlier ones."""
        return Cost.of(self.spent - self._before)

    @property
    def exhausted(self) -> str:
        """The limit that is reached, as "max_calls=100"; ``""`` if none is."""
        return self._refused or self._limit_below(self.spent, is_met=True)

    @property
    def open_payments(self) -> dict[str, Spend]:
        """Payments of questions without a row, by thread."""
        return dict(self._open)

    @property
    def threads_with_row(self) -> frozenset[str]:
        """Threads of the questions whose rows count, those of earlier attempts included."""
        return frozenset(self._with_row)

    def adopt(self, refused: str, open_payments: Mapping[str, Spend]) -> None:
        """Take over the standing of a ledger elsewhere: the limit that it has reached, and ``open_payments``."""
        self._refused = self._refused or refused
        self._open.update(open_payments)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return any(limit is not None for limit in self._limits.values())

    def has_room_for(self, more: Spend) -> bool:
        """Return whether the limits leave room for an amount, which holds that of the calls in flight."""
        return not self._limit_below(self.spent + more)

    def add(self, row: RunRow) -> Spend:
        """Count the payments of a question's row, in place of its calls counted before, and return them."""
        self._with_row.add(row.thread_id)
        counted = [usage.as_counted() for usage in row.paid or ()]
        cost = UNKNOWN if row.paid is None else self._prices.cost_of(counted)
        amount = Spend(
            calls=row.paid_llm_calls,
            tokens=sum(usage.tokens for usage in counted if usage.kind == "chat"),
            usd=cost.known_usd,
            unpriced=int(not cost.is_whole),
            estimated=int(cost.is_estimated),
        )
        amount = amount.at_least(self._open.pop(row.thread_id, NOTHING))
        self._rows += amount
        return amount

    def recover(self, calls: Iterable[JournaledCall]) -> None:
        """Count the calls of questions that were interrupted before they had a row."""
        for call in calls:
            for record in call.records if call.account not in self._with_row else ():
                self._book(call.account, self.spend_of(record))

    def spend_of(self, record: CallRecord) -> Spend:
        """Compute calls, tokens and cost of one call; its tokens may be estimates."""
        return self._prices.spend_of(record)

    async def reserve(self, expected: Spend, *, is_answer: bool = False) -> Reservation:
        """Wait until the limits allow a call, then reserve its expected amount; ``settle`` takes the result.

        Raises:
            RunLimitReached: The limits do not allow the call; it must not be made.
        """
        if self.is_limited:
            limit = await self._in_flight.wait_for_room(lambda: self._limit_in_the_way(expected))
            self._refused = self._refused or limit or ""
            if self._refused:
                raise RunLimitReached(
                    f"The run has reached {self._refused}. Run the same command with a higher limit to continue."
                )
        payment_id = self._payments.begin(ACCOUNT.get(), expected) if self._payments is not None else ""
        reservation = self._in_flight.hold(ACCOUNT.get(), expected)
        self._noted[reservation] = payment_id
        return reservation

    async def settle(self, place: object, actual: Spend) -> None:
        """Replace the reservation of a call by its actual amount."""
        assert isinstance(place, Reservation)
        self.made += actual
        self._book(place.thread_id, actual)
        self._in_flight.release(place)
        payment_id = self._noted.pop(place)
        if self._payments is not None:
            self._payments.end(payment_id, place.thread_id, actual)

    def _limit_in_the_way(self, expected: Spend) -> str:
        """Return the limit that a call would exceed; ``""`` if there is room, or none will be any more."""
        return "" if self._refused else self._limit_below(self.spent + self._in_flight.amount + expected)

    def _book(self, thread_id: str, amount: Spend) -> None:
        self._open[thread_id] = self._open.get(thread_id, NOTHING) + amount

    def _limit_below(self, amount: Spend, *, is_met: bool = False) -> str:
        """Return the first limit that an amount exceeds, or with ``is_met`` reaches; ``""`` without one."""
        of_limit = {"max_calls": amount.calls, "max_tokens": amount.tokens, "max_cost": amount.usd}
        for name, limit in self._limits.items():
            if limit is not None and (of_limit[name] > limit or (is_met and of_limit[name] == limit)):
                return f"{name}={limit:g}" if name == "max_cost" else f"{name}={limit}"
        return ""


def cost_of_row(row: RunRow, prices: Prices) -> Cost:
    """Compute the cost of one question; unknown if nothing was recorded."""
    return UNKNOWN if row.paid is None else prices.cost_of(row.paid)


def uncached_cost_of_row(row: RunRow, prices: Prices) -> Cost:
    """Compute the cost of one question as if no call had come from the cache."""
    return UNKNOWN if row.paid is None else prices.cost_of(usage.as_if_uncached() for usage in row.paid)


def check_priced(experiment: Experiment, settings: Settings, prices: Prices) -> None:
    """Check that every model has a price if the experiment has a ``max_cost``; see ``check_models_priced``.

    Embedding and rerank endpoints report no tokens, so their cost is unknown and not counted.
    """
    check_models_priced(experiment.max_cost, _models_of(experiment, settings), settings, prices)


def check_models_priced(
    max_cost: float | None, models: Iterable[tuple[CallKind, str]], settings: Settings, prices: Prices
) -> None:
    """Check that every model, of a kind and a spec, has a price if there is a ``max_cost``.

    Raises:
        SettingsError: ``max_cost`` cannot be enforced; the message names each model without a price.
    """
    if max_cost is None:
        return
    named_in_prices = [(kind, priced_as(spec, settings) if kind == "chat" else spec) for kind, spec in models]
    unpriced = [(kind, spec) for kind, spec in named_in_prices if prices.of(spec, kind) is None]
    if unpriced:
        named = ", ".join(dict.fromkeys(f"{kind} model {without_secrets(spec)!r}" for kind, spec in unpriced))
        raise SettingsError(
            f"max_cost={max_cost:g} cannot be enforced, since the price of the {named} is unknown. "
            f'Write it into {settings.home / FILE_NAME}, such as [{unpriced[0][0]}."MODEL"] and below it '
            "prompt = 0.5 and completion = 1.5 (dollars per million tokens), or leave out max_cost."
        )


def _models_of(experiment: Experiment, settings: Settings) -> Iterator[tuple[CallKind, str]]:
    yield "chat", settings.llm_spec
    names = [system_name(label) for label in experiment.systems]
    if any(find_system(name).judges for name in names):
        yield "chat", settings.judge_spec
    if not any(map(retrieves, names)):
        return
    if settings.embeddings != "auto" and experiment.search_type != "sparse":
        yield "embedding", settings.embeddings
    reranker = (experiment.ranker_params or {}).get("model")
    if experiment.ranker_type == "model" and isinstance(reranker, str):
        yield "rerank", reranker


@dataclass(frozen=True)
class _BilledAs:
    """What pays for the calls of one model, whose price has another name than its records."""

    payer: Payer
    model: str

    def spend_of(self, record: CallRecord) -> Spend:
        """Compute calls, tokens and cost of one call."""
        return self.payer.spend_of(CallRecord(**{**record, "model": self.model}))

    async def reserve(self, expected: Spend, *, is_answer: bool) -> object:
        """Reserve an attempt, see ``Payer``."""
        return await self.payer.reserve(expected, is_answer=is_answer)

    async def settle(self, place: object, actual: Spend) -> None:
        """Settle an attempt, see ``Payer``."""
        await self.payer.settle(place, actual)


class LimitedLLM(ChatWrapper):
    """A chat model whose calls a run pays for: each attempt is reserved before it is made, and settled after."""

    def __init__(self, inner: ChatLLM, payer: Payer, *, billed_as: str) -> None:
        """``billed_as``: name of the model in the prices."""
        super().__init__(inner)
        self._payer = _BilledAs(payer, billed_as)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        """Make a chat call within the limits of the run.

        Raises:
            RunLimitReached: The limits do not allow the call; it was not made.
        """
        return await self._inner.complete(
            messages, meter=replace(meter, payer=self._payer), options=options, **listeners
        )


MIN_ASKED = 10
"""Fewest questions for ``fail_after`` as a share."""


class SetupFailures:
    """Counter of questions that failed, in a row or as a share, and of those that found an endpoint unusable."""

    def __init__(self, fail_after: float, *, verb: str = "asked", kept: str = "Finished rows are kept.") -> None:
        """``fail_after``: from 1, a number of questions in a row; below 1, a share of the questions asked.

        ``verb`` and ``kept`` are words of the message.
        """
        self._fail_after = fail_after
        self._verb = verb
        self._kept = kept
        self._asked = self._failed = self._unusable = self._in_a_row = 0
        self._reason = ""

    def add(self, failure: str | None, *, is_unusable: bool = True) -> None:
        """Count a question, in the order in which they finished; ``failure`` is None for one that did not fail.

        ``is_unusable`` says that it found its endpoint unusable, so that the same command asks it again.
        """
        has_failed = failure is not None
        self._asked += 1
        self._failed += has_failed
        self._unusable += has_failed and is_unusable
        self._in_a_row = self._in_a_row + 1 if has_failed else 0
        self._reason = self._reason if failure is None else failure

    @property
    def is_reached(self) -> bool:
        """Whether the run should stop."""
        if self._fail_after >= 1:
            return self._in_a_row >= self._fail_after
        return self._asked >= MIN_ASKED and self._failed >= self._fail_after * self._asked

    def refuse(self) -> None:
        """Raise if the limit is reached, or if every question found its endpoint unusable.

        Raises:
            ModelSetupError: So it is; the message quotes the last failure.
        """
        if self.is_reached or 0 < self._unusable == self._asked:
            are_all_unusable = self._unusable == self._failed
            how = f"could not be {self._verb}" if are_all_unusable else "failed"
            again = "" if are_all_unusable else " with `--retry failed`"
            raise ModelSetupError(
                f"Stopped: {self._failed} of {self._asked} questions {how}. The last one: "
                f"{self._reason} {self._kept} Correct this and run the same command{again}, which asks the failed and "
                "the remaining questions."
            )
