"""Where the cells of a table are on a page, by the lines around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from .pictures import THIN, Rule, Rules
from .words import Word

_MAX_CROSSINGS = 200_000
"""Most pairs of lines of which some cross; a page with more is a drawing."""
_MAX_CELLS = 20_000


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Where the cells of a table are."""

    lefts: Sequence[float]
    """Edges of its columns from the left, one more than there are columns."""
    tops: Sequence[float]
    """Edges of its rows from above, one more than there are rows."""
    across: Sequence[Rule]
    down: Sequence[Rule] | None
    """None if free space parts its columns."""

    @cached_property
    def _walls(self) -> list[list[bool]]:
        """For each row, whether a line is to the left of each column; the last one is that on the right."""
        if self.down is None:
            return [[True] * len(self.lefts)] * (len(self.tops) - 1)
        middles = [(above + below) / 2 for above, below in pairwise(self.tops)]
        return _covered(self.lefts, self.down, middles)

    @cached_property
    def _floors(self) -> list[list[bool]]:
        """For each column, whether a line is above each row; the last one is that below all."""
        return _covered(self.tops, self.across, [(left + right) / 2 for left, right in pairwise(self.lefts)])

    def is_parted(self, row: int, column: int, *, below: bool = False) -> bool:
        """Return whether a line is right of a place, or below it."""
        return self._floors[column][row + 1] if below else self._walls[row][column + 1]

    def holds(self, word: Word) -> bool:
        """Return whether a word stands within the table."""
        middle = (word.left + word.right) / 2
        return (
            self.lefts[0] <= middle <= self.lefts[-1]
            and self.tops[-1] <= word.base + 0.3 * word.size <= self.tops[0]
            and not word.turn
        )

    def has(self, rule: Rule) -> bool:
        """Return whether a line that lies flat is one of the table's."""
        y, left, right = rule
        return (
            self.tops[-1] - THIN < y < self.tops[0] + THIN
            and left > self.lefts[0] - THIN
            and right < self.lefts[-1] + THIN
        )

    def stacked(self) -> Iterator[Grid]:
        """Yield the tables that stand directly below each other, those with other columns apart."""
        width, first = len(self.lefts) - 1, 0
        for row in range(len(self.tops) - 1):
            last = row == len(self.tops) - 2
            if not last:
                here, next_ = ({at for at in range(1, width) if self._walls[each][at]} for each in (row, row + 1))
                if here <= next_ or next_ <= here or not all(column[row + 1] for column in self._floors):
                    continue
            used = [
                at for at in range(width + 1) if at in (0, width) or any(w[at] for w in self._walls[first : row + 1])
            ]
            yield Grid(
                lefts=[self.lefts[at] for at in used],
                tops=self.tops[first : row + 2],
                across=self.across,
                down=self.down,
            )
            first = row + 1


def _covered(places: Sequence[float], rules: Sequence[Rule], middles: Sequence[float]) -> list[list[bool]]:
    """Return for each middle of a row or column whether a line at each of the places reaches across it."""
    at_place = [[rule for rule in rules if abs(rule[0] - place) < THIN] for place in places]
    return [[any(begin <= middle <= end for _, begin, end in each) for each in at_place] for middle in middles]


def grids_of(rules: Rules) -> list[Grid]:
    """Return the tables of a page whose columns are parted by lines, small ones first."""
    count = len(rules.across)
    if not rules.down or count * len(rules.down) > _MAX_CROSSINGS:
        return []
    owner = list(range(count + len(rules.down)))

    def find(each: int) -> int:
        while owner[each] != each:
            owner[each] = owner[owner[each]]
            each = owner[each]
        return each

    for flat, (y, left, right) in enumerate(rules.across):
        for upright, (x, bottom, top) in enumerate(rules.down, start=count):
            if left - THIN <= x <= right + THIN and bottom - THIN <= y <= top + THIN:
                owner[find(upright)] = find(flat)
    parts: defaultdict[int, tuple[list[Rule], list[Rule]]] = defaultdict(lambda: ([], []))
    for at, rule in enumerate([*rules.across, *rules.down]):
        parts[find(at)][at >= count].append(rule)
    grids = [
        each
        for across, down in parts.values()
        if across and down
        for each in Grid(
            lefts=_edges(down, across), tops=_edges(across, down)[::-1], across=across, down=down
        ).stacked()
        if len(each.lefts) > 2 and (len(each.lefts) - 1) * (len(each.tops) - 1) <= _MAX_CELLS
    ]
    return sorted(grids, key=lambda grid: (grid.lefts[-1] - grid.lefts[0]) * (grid.tops[0] - grid.tops[-1]))


def _edges(rules: Sequence[Rule], crossing: Sequence[Rule]) -> list[float]:
    """Return the places of lines, and the ends of those that cross them where these reach further."""
    edges: list[float] = []
    ends = [min(begin for _, begin, _ in crossing), max(end for _, _, end in crossing)]
    for place in sorted(rule[0] for rule in rules):
        if not edges or place - edges[-1] >= THIN:
            edges.append(place)
    return [
        *(ends[:1] if edges[0] - ends[0] > THIN else ()),
        *edges,
        *(ends[1:] if ends[1] - edges[-1] > THIN else ()),
    ]


def areas_of(grid: Grid, columns: range) -> Iterator[tuple[range, range]]:
    """Yield the rectangles of places that no line parts; other shapes place by place."""
    rows = range(len(grid.tops) - 1)
    seen: set[tuple[int, int]] = set()
    for place in ((row, column) for row in rows for column in columns):
        if place in seen:
            continue
        area, waiting = {place}, [place]
        while waiting:
            row, column = waiting.pop()
            for other, is_open in (
                ((row, column + 1), column + 1 in columns and not grid.is_parted(row, column)),
                ((row, column - 1), column - 1 in columns and not grid.is_parted(row, column - 1)),
                ((row + 1, column), row + 1 in rows and not grid.is_parted(row, column, below=True)),
                ((row - 1, column), row - 1 in rows and not grid.is_parted(row - 1, column, below=True)),
            ):
                if is_open and other not in area:
                    area.add(other)
                    waiting.append(other)
        seen |= area
        down, across = ({each[side] for each in area} for side in (0, 1))
        if len(area) == len(down) * len(across):
            yield range(min(down), max(down) + 1), range(min(across), max(across) + 1)
        else:
            yield from ((range(row, row + 1), range(column, column + 1)) for row, column in area)
