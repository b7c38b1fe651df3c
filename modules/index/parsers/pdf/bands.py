"""Bands of rows that leave the same vertical spaces free, as the rows of columns and of tables do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from .rows import GUTTER, PARAGRAPH, Row, Span

_LEAST_ROWS = 3


def bands_of(rows: Sequence[Row]) -> Iterator[tuple[list[Row], list[Span]]]:
    """Yield consecutive rows that leave the same vertical spaces free, with those spaces."""
    band: list[Row] = []
    free: list[Span] = []
    extent = (0.0, 0.0)
    for row, below in zip(rows, [*rows[1:], None], strict=True):
        gaps, own = _gaps(row), (row.segments[0].left, max(segment.right for segment in row.segments))
        common = _common(free, gaps, row.size) if band else gaps
        both = (min(extent[0], own[0]), max(extent[1], own[1])) if band else own
        splits = _inner(free, extent) or _inner(gaps, own) or (below is not None and _is_beside(row, below))
        if band and not _inner(common, both) and splits:
            yield from _trimmed(band, _inner(free, extent))
            band, common, both = [], gaps, own
        band.append(row)
        free, extent = common, both
    if band:
        yield from _trimmed(band, _inner(free, extent))


def _is_beside(row: Row, below: Row) -> bool:
    """Return whether a row is beside the one below it, as lines of columns with other line heights do."""
    apart = max(
        below.segments[0].left - max(segment.right for segment in row.segments),
        row.segments[0].left - max(segment.right for segment in below.segments),
    )
    return row.base - below.base < PARAGRAPH * row.size and apart >= GUTTER * row.size


def _trimmed(band: list[Row], gutters: list[Span]) -> Iterator[tuple[list[Row], list[Span]]]:
    """Yield a band, its first and last row apart where they stand away from the others, as running titles do."""
    first, last = 0, len(band)
    if len(band) > _LEAST_ROWS and gutters:
        steps = [above.base - below.base for above, below in pairwise(band)]
        usual = 1.6 * median(steps)
        first, last = int(steps[0] > usual), len(band) - int(steps[-1] > usual)
    if first:
        yield band[:first], gutters
    yield band[first:last], gutters
    if last < len(band):
        yield band[last:], gutters


def _gaps(row: Row) -> list[Span]:
    edges = [(segment.left, segment.right) for segment in row.segments]
    return [
        (before, after)
        for before, after in zip(
            [float("-inf"), *(right for _, right in edges)], [*(left for left, _ in edges), float("inf")], strict=True
        )
    ]


def _common(free: Sequence[Span], gaps: Sequence[Span], size: float) -> list[Span]:
    """Return the spaces that two sorted lists have in common and that are wide enough."""
    common, first, second = [], 0, 0
    while first < len(free) and second < len(gaps):
        left, right = max(free[first][0], gaps[second][0]), min(free[first][1], gaps[second][1])
        if right - left >= GUTTER * size:
            common.append((left, right))
        if free[first][1] < gaps[second][1]:
            first += 1
        else:
            second += 1
    return common


def _inner(spaces: Sequence[Span], extent: Span) -> list[Span]:
    """Return the spaces that have words on both sides."""
    return [space for space in spaces if space[0] >= extent[0] and space[1] <= extent[1]]
