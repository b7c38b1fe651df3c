"""Batches of texts of like length, so that little is padded."""

from __future__ import annotations

from collections.abc import Sequence


def by_length(lengths: Sequence[int], *, budget: int, most: int | None = None) -> list[list[int]]:
    """Return batches of the positions of all lengths, the longest first, each position once.

    A batch, padded to its longest, has at most ``budget``, unless it is a single one, and at most ``most`` positions.

    >>> by_length([3, 9, 4, 4], budget=12)
    [[1], [2, 3, 0]]
    """
    batches: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        newest = batches[-1] if batches else []
        fits = newest and lengths[newest[0]] * (len(newest) + 1) <= budget and (most is None or len(newest) < most)
        if fits:
            newest.append(position)
        else:
            batches.append([position])
    return batches
