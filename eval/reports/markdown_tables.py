"""Tables in Markdown, and means with their intervals in the cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pandas as pd

_BAR = r"\|"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; a bar or line break within a cell stays within it.

    >>> list(markdown_table(["system", "EM"], [["naive", "0.41"]]))
    ['| system | EM |', '| --- | --- |', '| naive | 0.41 |']
    """
    for cells in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(' '.join(cell.splitlines()).replace('|', _BAR) for cell in cells)} |"


def with_interval(
    mean: float, low: float | None, high: float | None, show: Callable[[float], str], *, note: str = ""
) -> str:
    """Format a mean as "91.3 (88.0 to 94.1; note)", without what is missing.

    >>> with_interval(0.5, None, None, "{:.2f}".format), with_interval(0.5, 0.25, 1, "{:.2f}".format)
    ('0.50', '0.50 (0.25 to 1.00)')
    """
    bounds = "" if low is None or high is None or pd.isna(low) or pd.isna(high) else f"{show(low)} to {show(high)}"
    around = "; ".join(filter(None, (bounds, note)))
    return f"{show(mean)} ({around})" if around else show(mean)
