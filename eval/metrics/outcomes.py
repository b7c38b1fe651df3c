"""What systems are compared by: the primary outcome, and the others, which are corrected together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...modules.errors import SettingsError, did_you_mean

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
    "llm_calls",
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
    """Return title, unit and direction of a column by which systems are compared.

    >>> measure_of("llm_calls")
    Measure(name='llm_calls', title='calls', unit='count', better='lower')
    """
    from .dictionary import column_of  # noqa: PLC0415 - --help of runs does without

    column = column_of(metric)
    if column is None:
        return Measure(name=metric, title=metric, unit="score", better="higher")
    unit = _UNITS.get(column.unit, "score")
    return Measure(name=metric, title=column.title or metric, unit=unit, better=column.better or "higher")


def check_primary(name: str) -> None:
    """Check that a primary outcome is a column with numbers, or may be a metric of one's own.

    Raises:
        SettingsError: It is none.
    """
    from .dictionary import COLUMNS, column_of  # noqa: PLC0415 - --help of runs does without

    column = column_of(name)
    if column is not None and not column.better and column.unit not in ("text", "true or false"):
        raise SettingsError(
            f"The primary outcome {name!r} is neither better high nor low, so that no system is better by it. Name one "
            f"such as {', '.join(OUTCOMES)}."
        )
    if column is None or column.unit in ("text", "true or false"):
        raise SettingsError(
            f"The primary outcome {name!r} is no column with numbers.{did_you_mean(name, COLUMNS)} Name one of "
            f"`judgetree eval metrics`, such as {', '.join(OUTCOMES)}, or score_NAME for a metric of your own."
        )


def families_words(primary: str, compared: Sequence[str], counts: Mapping[Family, int]) -> str:
    """Say which outcomes are corrected together, and for how many comparisons.

    Args:
        primary: The primary outcome.
        compared: All outcomes, in order.
        counts: Number of comparisons of each family.
    """
    others = ", ".join(measure_of(each).title for each in compared if each != primary)
    how = f"corrected for {counts['primary']:,}" if counts["primary"] else "of which no two systems have figures"
    said = f"Primary outcome: {measure_of(primary).title}, {how}."
    return f"{said} Others, corrected together for {counts['secondary']:,}: {others}." if others else said
