"""What the holders of keys spend on a day: reserved before a run, and corrected after it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, cast

from ....modules.calls.record import Spend
from ....modules.errors import JudgetreeError
from .key import Budget
from .tables import KeyTables

Resource = Literal["usd", "tokens", "seconds"]
_RESOURCES: tuple[Resource, ...] = ("usd", "tokens", "seconds")
_WORDS: dict[Resource, str] = {"usd": "US dollars", "tokens": "tokens", "seconds": "seconds of run time"}
_OPEN = "open:"
"""Comes before the turn that a run has begun and not ended: its id, a colon and its conversation."""
_IS_OPEN = f"substr(turn_id, 1, {len(_OPEN)}) = '{_OPEN}'"
_SETTLED = f"turn_id <> '' AND NOT {_IS_OPEN}"
"""Rows of runs that have ended: they have the id of their turn, or their own."""
_UNLIMITED = 1e18
_LEAST = 1e-9
_SHARE = 10
"""A question without a limit of its own reserves this part of a day's budget."""
_KEPT_DAYS = 31
_HELD_S = 5.0
"""Time after which to ask again where running questions hold what is left."""


class DailyBudgetExhausted(JudgetreeError):
    """A key's budget of the day has no room for another question."""

    def __init__(self, message: str, *, renews_in_s: float, is_held: bool) -> None:
        """Create an error; ``renews_in_s`` is the time to the next day of UTC, or less if running questions hold it."""
        super().__init__(message)
        self.renews_in_s = renews_in_s
        self.is_held = is_held


@dataclass(frozen=True)
class OpenRun:
    """A run that reserves, and may have been killed."""

    run_id: str
    turn_id: str
    conversation: str
    """Stored name of the turn's conversation."""


class KeyLedger:
    """The budgets of all keys, shared by all workers; every method blocks.

    A run is let in only if what is spent and reserved leaves room for the most that it may use, so that workers
    together spend no more than the budget. A resource that no limit bounds for a single question may be exceeded by the
    questions in flight. What a worker had reserved when it was killed counts as spent until its turn is settled.

    What was spent on a later day than the clock's counts today too, so a clock that goes back over midnight gives no
    second budget. If it is later than tomorrow, the clock was wrong then, and today is noted instead.
    """

    def __init__(self, tables: KeyTables, *, clock: Callable[[], float] = time.time) -> None:
        self._tables = tables
        self._clock = clock

    def reserve(self, key_id: str, per_day: Budget, per_question: Budget) -> str:
        """Reserve what a run may use at most, and return the id of the reservation.

        Raises:
            DailyBudgetExhausted: Too little is left of the day's budget.
            SettingsError: The ledger cannot be used.
        """
        run_id, day = uuid.uuid4().hex, self._day()
        most = {name: _most(per_day, per_question, name) for name in _RESOURCES}
        needed = [_LEAST if getattr(per_question, name) is None else most[name] for name in _RESOURCES]
        limits = [_limit(per_day, name) for name in _RESOURCES]
        fits = " AND ".join(
            f"(SELECT COALESCE(SUM({name}), 0) FROM key_use WHERE key_id = ? AND day >= ?) "
            "+ CAST(? AS DOUBLE PRECISION) <= CAST(? AS DOUBLE PRECISION)"
            for name in _RESOURCES
        )
        values = "CAST(? AS TEXT), '', CAST(? AS TEXT), CAST(? AS TEXT), " + ", ".join(
            f"CAST(? AS {kind})" for kind in ("DOUBLE PRECISION", "BIGINT", "DOUBLE PRECISION")
        )
        tests = [part for i in range(len(_RESOURCES)) for part in (key_id, day, needed[i], limits[i])]
        amounts = [most["usd"], int(most["tokens"]), most["seconds"]]
        self._tables.write(
            ("DELETE FROM key_use WHERE day < ?", (self._day(before=_KEPT_DAYS),)),
            ("UPDATE key_use SET day = ? WHERE day > ?", (day, self._day(before=-1))),  # the clock was far ahead
            (f"INSERT INTO key_use SELECT {values} WHERE {fits}", (run_id, key_id, day, *amounts, *tests)),
        )
        if not self._tables.read("SELECT 1 FROM key_use WHERE run_id = ?", run_id):
            raise self._spent(key_id, day, needed, limits)
        return run_id

    def grow(self, run_id: str, per_day: Budget, wanted: Spend) -> bool:
        """Reserve so much for a run in all if the day's budget allows it; False, and no change, if it does not.

        What other runs have reserved counts in full, and of this run's own reservation only what is wanted. The day is
        that on which the run was let in, or the clock's if that is earlier, as after a clock was set back.

        Raises:
            SettingsError: The ledger cannot be used.
        """
        names = ", ".join(_RESOURCES)
        others = "(SELECT COALESCE(SUM({0}), 0) FROM key_use AS other WHERE other.key_id = key_use.key_id "
        others += "AND (other.day >= key_use.day OR other.day >= CAST(? AS TEXT)) AND other.run_id <> key_use.run_id)"
        fits = " AND ".join(
            f"{others.format(name)} + CAST(? AS DOUBLE PRECISION) <= CAST(? AS DOUBLE PRECISION)" for name in _RESOURCES
        )
        amounts = [float(getattr(wanted, name)) for name in _RESOURCES]
        tests = [
            part
            for name, amount in zip(_RESOURCES, amounts, strict=True)
            for part in (self._day(), amount, _limit(per_day, name))
        ]

        def is_reserved() -> bool:
            held = self._tables.read(f"SELECT {names} FROM key_use WHERE run_id = ?", run_id)
            return bool(held) and all(
                float(cast(float, each)) >= most for each, most in zip(held[0], amounts, strict=True)
            )

        if is_reserved():
            return bool(self._tables.read(f"SELECT 1 FROM key_use WHERE run_id = ? AND {fits}", run_id, *tests))
        sets = ", ".join(f"{name} = CASE WHEN {name} < ? THEN ? ELSE {name} END" for name in _RESOURCES)
        grown = [wanted.usd, wanted.usd, wanted.tokens, wanted.tokens, wanted.seconds, wanted.seconds]
        self._tables.write((f"UPDATE key_use SET {sets} WHERE run_id = ? AND {fits}", (*grown, run_id, *tests)))
        return is_reserved()

    def name_turn(self, run_id: str, turn_id: str, conversation: str) -> None:
        """Tell which turn of which conversation a run asks, so that its reservation ends even if its worker is killed.

        Raises:
            SettingsError: The ledger cannot be used.
        """
        named = f"{_OPEN}{turn_id}:{conversation}"
        self._tables.write(("UPDATE key_use SET turn_id = ? WHERE run_id = ?", (named, run_id)))

    def open_runs(self, key_id: str) -> list[OpenRun]:
        """Return the runs of today that have named their turn and were not settled, by id; none of older versions.

        Raises:
            SettingsError: The ledger cannot be used.
        """
        rows = self._tables.read(
            f"SELECT run_id, turn_id FROM key_use WHERE key_id = ? AND day >= ? AND {_IS_OPEN} ORDER BY run_id",
            key_id,
            self._day(),
        )
        named = ((str(run_id), str(turn)[len(_OPEN) :].partition(":")) for run_id, turn in rows)
        return [OpenRun(run_id, turn_id, name) for run_id, (turn_id, _, name) in named if name]

    def settle(self, run_id: str, spent: Spend, *, turn_id: str = "") -> None:
        """Replace a reservation by what its run used; what is unknown stays as it was reserved.

        Args:
            run_id: Id of the reservation.
            spent: Sums of the run, or of the whole turn.
            turn_id: Turn whose sums they are: charges of its earlier runs are subtracted, and the reservations of those
                that were killed end.

        Raises:
            SettingsError: The ledger cannot be used.
        """
        sums, opened = "COALESCE(SUM(usd), 0), COALESCE(SUM(tokens), 0)", f"{_OPEN}{turn_id}:"
        earlier = f"SELECT {sums} FROM key_use WHERE turn_id = ? AND run_id <> ?"
        usd, tokens = self._tables.read(earlier, turn_id, run_id)[0] if turn_id else (0.0, 0)
        sets, values = ["turn_id = ?", "tokens = ?", "seconds = ?"], [turn_id or run_id]  # so that it is settled
        values += [max(0, spent.tokens - int(cast(int, tokens))), spent.seconds]  # type: ignore[list-item]
        if not spent.unpriced:
            sets.append("usd = ?")
            values.append(max(0.0, spent.usd - float(cast(float, usd))))  # type: ignore[arg-type]
        self._tables.write(
            (f"UPDATE key_use SET {', '.join(sets)} WHERE run_id = ?", (*values, run_id)),
            (f"DELETE FROM key_use WHERE {_IS_OPEN} AND substr(turn_id, 1, ?) = ?", (len(opened), opened)),
        )

    def used(self, key_id: str) -> Spend:
        """Return what a key has spent and reserved today."""
        return self._used(key_id, self._day())

    def _used(self, key_id: str, day: str, where: str = "TRUE") -> Spend:
        sums = ", ".join(f"COALESCE(SUM({name}), 0)" for name in _RESOURCES)
        row = self._tables.read(f"SELECT {sums} FROM key_use WHERE key_id = ? AND day >= ? AND {where}", key_id, day)[0]
        usd, tokens, seconds = (float(cast(float, value)) for value in row)
        return Spend(usd=usd, tokens=int(tokens), seconds=seconds)

    def _spent(self, key_id: str, day: str, needed: Sequence[float], limits: Sequence[float]) -> DailyBudgetExhausted:
        used, settled = self._used(key_id, day), self._used(key_id, day, _SETTLED)
        spent = _too_little(settled, needed, limits)
        name = spent or _too_little(used, needed, limits) or "usd"  # a question may have ended meanwhile
        amount = f"{getattr(used, name):g} of {limits[_RESOURCES.index(name)]:g} {_WORDS[name]} are used"
        if name == "usd":
            amount += " (a question of a model without a price counts a tenth of the day)"
        full = f"The budget of this key for {day} has no room for another question:"
        if spent is None:
            advice = "Ask again when one of them has ended."
            message = f"{full} {amount} or held for questions that are being answered. {advice}"
            return DailyBudgetExhausted(message, renews_in_s=_HELD_S, is_held=True)
        now = datetime.fromtimestamp(self._clock(), UTC)
        midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        return DailyBudgetExhausted(
            f"{full} {amount}. It renews at {midnight.isoformat(timespec='minutes')}.",
            renews_in_s=(midnight - now).total_seconds(),
            is_held=False,
        )

    def _day(self, *, before: int = 0) -> str:
        return (datetime.fromtimestamp(self._clock(), UTC) - timedelta(days=before)).date().isoformat()


def _too_little(used: Spend, needed: Sequence[float], limits: Sequence[float]) -> Resource | None:
    """Return the first resource of which too little is left."""
    short = (
        name
        for name, least, limit in zip(_RESOURCES, needed, limits, strict=True)
        if getattr(used, name) + least > limit
    )
    return next(short, None)


def _limit(budget: Budget, name: Resource) -> float:
    limit: float | None = getattr(budget, name)
    return _UNLIMITED if limit is None else limit


def reserved_at_first(per_day: Budget, per_question: Budget) -> Spend:
    """Return what ``reserve`` has reserved for a run, or would have if the day's budget had room for it."""
    usd, tokens, seconds = (_most(per_day, per_question, name) for name in _RESOURCES)
    return Spend(usd=usd, tokens=int(tokens), seconds=seconds)


def _most(per_day: Budget, per_question: Budget, name: Resource) -> float:
    """Return what one question may use, or is taken to use."""
    limit: float | None = getattr(per_question, name)
    if limit is not None:
        return limit
    of_day: float | None = getattr(per_day, name)
    return 0.0 if of_day is None else of_day / _SHARE
