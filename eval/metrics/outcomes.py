"""What systems are compared by: the primary outcome, and the others, which are corrected together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from .dictionary import Unit as ColumnUnit
    from .statistics import Unit

PRIMARY = "em"
"""The primary outcome, unless an experiment names another."""
OUTCOMES = (
    "em",
    "f1",
    "evidence",
    "tree_recall",
    "chat_calls",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "seconds",
)
"""What is always compared, where both systems have it; metrics of one's own are compared too."""
Family = Literal["", "primary", "secondary"]
"""primary: the comparisons by the primary outcome, corrected together. secondary: all others, corrected together.
"": those of splits."""
_UNITS: Mapping[ColumnUnit, Unit] = {
    **{"share": "points", "count": "count", "tokens": "tokens", "USD": "USD", "seconds": "seconds"}
}


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A column by which systems are compared."""

    name: str
    title: str
    unit: Unit
    better: Literal["higher", "lower"]
    """Which values are better."""


def measure_of(metric: str) -> Measure:
    """Return how a column is compared and told.

    >>> measure_of("chat_calls")
    Measure(name='chat_calls', title='calls', unit='count', better='lower')
    """

    from .dictionary import column_of  # noqa: PLC0415 - --help of runs does without

    column = column_of(metric)
    if column is None:
        return Measure(name=metric, title=metric, unit="score", better="higher")
    unit = _UNITS.get(column.unit, "score")
    return Measure(name=metric, title=column.title or metric, unit=unit, better=column.better or "higher")


def families_words(primary: str, compared: Sequence[str], counts: Mapping[Family, int]) -> str:
    """Say which outcomes are corrected together, and for how many comparisons.

    Args:
        primary: The primary outcome.
        compared: All outcomes, in order.
        counts: Number of comparisons of each family.
    """
    others = ", ".join(measure_of(each).title for each in compared if each != primary)
    said = f"Primary outcome: {measure_of(primary).title}, corrected for {counts['primary']:,}."
    return f"{said} Others, corrected together for {counts['secondary']:,}: {others}." if others else said
