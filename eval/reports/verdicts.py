"""Comparisons as readers see them: a sentence each by the primary outcome, and a table of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from ...graphs.drawing.words import count_of
from ...modules.storage.texts import html_text
from ..metrics.comparison_words import format_score
from ..metrics.outcomes import families_words
from ..metrics.statistics import PairedComparison, PairedTest
from ..tables.html import blocks_html
from ..tables.table import Block, Cell, Table, estimate_cell
from .compare import Comparison

_TESTS: dict[PairedTest, str] = {"mcnemar": "McNemar", "permutation": "permutation"}


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
