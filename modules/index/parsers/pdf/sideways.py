"""Heads of columns that are turned by a quarter, as heads that stand upright."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .rows import rows_of
from .words import Word

_QUARTERS = 90, 270
_ALIGNED = 2.0
"""Most difference of the lower or upper ends of heads beside each other, in points."""
_NEAR, _DEEP = 4.0, 12.0
"""Most distance of a head from the words below it, across and downwards, in heights of letters."""
_BELOW = 0.25
"""What of a letter is below its line, in sizes of its font."""
_LEAST_HEADS = 2


def upright_heads(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Return words with each turned head of a column as one upright word, and the turned words that are no heads."""
    upright, turned = [word for word in words if not word.turn], [word for word in words if word.turn]
    left: list[Word] = []
    for turn in sorted({word.turn for word in turned}):
        group = [word for word in turned if word.turn == turn]
        heads = _heads(group, upright) if turn in _QUARTERS and upright else []
        if len(heads) >= _LEAST_HEADS and len(heads) == len(rows_of(group)):
            upright += heads
        else:
            left += group
    return upright, left


def _heads(turned: Sequence[Word], upright: Sequence[Word]) -> list[Word]:
    """Return turned texts beside each other with words below each of them; none if some are no heads."""
    found: list[tuple[Word, float]] = []
    for row in rows_of(turned):
        if len(row.segments) > 1:
            return []
        (segment,) = row.segments
        text = row.text(row.segments)
        below, above = _BELOW * row.size, (1 - _BELOW) * row.size
        if segment.words[0].turn == _QUARTERS[0]:
            places, low, high = (row.base - below, row.base + above), -segment.right, -segment.left
        else:
            places, low, high = (-row.base - above, -row.base + below), segment.left, segment.right
        word = replace(
            segment.words[0],
            text=text,
            turn=0,
            left=places[0],
            right=places[1],
            base=low,
            is_apart=True,
            is_struck=False,
        )
        found.append((word, high))
    is_level = any(
        max(ends) - min(ends) <= _ALIGNED
        for ends in (
            [word.base for word, _ in found],
            [high for _, high in found],
            [word.base + high for word, high in found],
        )
    )
    lowest, highest = min(word.base for word, _ in found), max(high for _, high in found)
    if not is_level or not all(_has_below(word, lowest, upright) for word, _ in found):
        return []
    beside = [word.base for word in upright if lowest - _BELOW * word.size < word.base < highest]
    base = min(beside, default=lowest)
    return [replace(word, base=base) for word, _ in found]


def _has_below(head: Word, lowest: float, upright: Sequence[Word]) -> bool:
    near = _NEAR * head.size
    return any(
        lowest - _DEEP * head.size < word.base < lowest
        and word.left - near < head.left
        and head.right < word.right + near
        for word in upright
    )
