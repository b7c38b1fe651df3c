"""Comparisons as readers see them: a sentence each by the primary outcome, a table of the others, a frame of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pandas as pd

from ...graphs.drawing.words import count_of
from ...modules.storage.texts import html_text
from ..metrics.comparison_words import format_score
from ..metrics.gain_per_cost import COSTS, GainPerCost
from ..metrics.outcomes import families_words
from ..metrics.statistics import PairedComparison, PairedTest
from ..tables.html import blocks_html
from ..tables.table import Block, Cell, Table, estimate_cell
from .compare import Comparison

_TESTS: dict[PairedTest, str] = {"mcnemar": "McNemar", "permutation": "permutation"}


_COLUMNS = (
    *("split", "part", "a", "b", "metric", "mean_a", "mean_b", "difference", "low", "high", "test"),
    *("p_value", "adjusted_p_value", "family", "comparisons", "n", "left_out", "is_shown"),
    *("usable_difference", "usable_n"),
    *(f"{cost.column}{end}" for cost in COSTS.values() for end in ("", "_low", "_high")),
)


def comparison_blocks(comparisons: Sequence[Comparison], primary: str) -> Iterator[Block]:
    """Yield the verdicts by the primary outcome, what is corrected together, and a table of the other comparisons."""
    if first := [each for each in comparisons if each.family == "primary"]:
        yield "\n".join(f"- {each.verdict}" for each in first)
    yield from _others(comparisons, primary)


def comparisons_html(comparisons: Sequence[Comparison], primary: str) -> str:
    """Build the same for a page; verdicts that show a difference are marked."""
    first = (each for each in comparisons if each.family == "primary")
    return f"{verdicts_html(first)}{blocks_html(_others(comparisons, primary))}"


def verdicts_html(comparisons: Iterable[Comparison]) -> str:
    """Build the list of the verdicts of comparisons; those that show a difference are marked."""
    items = (
        f'<li class="{"shown" if each.paired.is_shown else "open"}">{html_text(each.verdict)}</li>'
        for each in comparisons
    )
    return f'<ul class="verdicts">{"".join(items)}</ul>'


def families_of(comparisons: Sequence[Comparison], primary: str) -> str:
    """Say which comparisons are corrected together; those of splits are one family."""
    if not any(each.family for each in comparisons):
        return f"Corrected together: {count_of(len(comparisons), 'comparison')}."
    counts = Counter(each.family for each in comparisons)
    compared = list(dict.fromkeys(each.paired.metric for each in comparisons))
    return families_words(primary, compared, counts)


def comparison_table(comparisons: Iterable[Comparison], *, name: str = "", caption: str = "") -> Table:
    """Return a table with a row for each comparison: the systems, the outcome, A less B with its interval, p, and n."""
    return Table.of(
        ("A", "B", "Outcome", "Test", "n", "A less B", "p"),
        map(_row, comparisons),
        name=name,
        caption=caption,
        texts=4,
    )


def comparison_frame(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """Return a row for each comparison, in their order.

    Columns: ``split`` and ``part`` (``""`` for all questions), ``a``, ``b``, ``metric``, ``mean_a``, ``mean_b``,
    ``difference`` (of A less B) with its 95 % interval ``low`` and ``high``, ``test``, ``p_value``,
    ``adjusted_p_value`` (Holm), ``family`` ("primary", "secondary", or ``""`` for splits), ``comparisons`` (how many of
    the family it was corrected for), ``n`` (questions), ``left_out``,
    ``is_shown`` (whether a difference was shown), and ``usable_difference`` over the ``usable_n`` questions that have
    answers whose replies could all be used, missing where all could, or where these are too few. ``gain_per_call``,
    ``gain_per_1000_prompt_tokens`` and ``gain_per_us_cent`` (of A and B, the one that takes more), with 95 % intervals
    ``…_low`` and ``…_high``, are there where a difference of the primary outcome was shown, and one of that cost.
    """
    records = [
        {
            "split": each.split,
            "part": each.part,
            "a": each.a,
            "b": each.b,
            "metric": each.paired.metric,
            "mean_a": each.paired.mean_a,
            "mean_b": each.paired.mean_b,
            "difference": each.paired.difference.mean,
            "low": each.paired.difference.low,
            "high": each.paired.difference.high,
            "test": each.paired.test,
            "p_value": each.paired.p_value,
            "adjusted_p_value": each.paired.adjusted_p_value,
            "family": each.family,
            "comparisons": each.paired.comparisons,
            "n": each.paired.difference.n,
            "left_out": each.left_out,
            "is_shown": each.paired.is_shown,
            "usable_difference": each.usable.difference.mean if each.usable else None,
            "usable_n": each.usable_n,
            **_gain_columns(each.gains),
        }
        for each in comparisons
    ]
    return pd.DataFrame.from_records(records, columns=_COLUMNS)


def _gain_columns(gains: Sequence[GainPerCost]) -> dict[str, float | None]:
    return {
        f"{COSTS[each.cost].column}{end}": value
        for each in gains
        for end, value in (("", each.gain.mean), ("_low", each.gain.low), ("_high", each.gain.high))
    }


def _others(comparisons: Sequence[Comparison], primary: str) -> Iterator[Block]:
    if comparisons:
        yield families_of(comparisons, primary)
    if others := [each for each in comparisons if each.family != "primary"]:
        yield comparison_table(others)


def _row(each: Comparison) -> tuple[Cell | str, ...]:
    paired, shown = each.paired, "*" if each.paired.is_shown else ""
    p_value = paired.p_value if paired.adjusted_p_value is None else paired.adjusted_p_value
    difference = paired.difference
    return (
        *(each.a, each.b, paired.title or paired.metric, _TESTS[paired.test], f"{difference.n:,}"),
        estimate_cell(difference.mean, difference.low, difference.high, partial(_signed, paired), marks=shown),
        "< .001" if p_value < 0.001 else f"{p_value:.3f}",
    )


def _signed(paired: PairedComparison, value: float) -> str:
    return format_score(paired, value, signed=True).replace("-", "\N{MINUS SIGN}")
