"""Texts that make a pattern of regular expressions work the most, made from its own parse tree."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_POOL = " \n\t\raAzZ09_.,;:!?-'\"`()[]{}<>/\\|*#=+~@&%$^\u3000“”’–中是没，。：、？！é\u0301٣ß\u2028\x00😀"
_MOST = 12
"""Samples of one part of a pattern."""
_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_Node = tuple[Any, Any]


class Pump(NamedTuple):
    """A text that is repeated behind an opening which the pattern accepts."""

    opening: str
    repeated: str

    def text(self, size: int, ending: str) -> str:
        """Return about ``size`` characters."""
        times = max(1, (size - len(self.opening) - len(ending)) // len(self.repeated))
        return f"{self.opening}{self.repeated * times}{ending}"


ENDINGS = ("", "\x00", "a", "\n!", "。")


def pumps_of(pattern: str, flags: int = 0) -> set[Pump]:
    """Return pumps of every repetition and sequence in a pattern: its samples, and pairs of neighbours."""
    return {pump for pump in _pumps(list(sre_parser.parse(pattern, flags)), "") if pump.repeated}


def _pumps(nodes: Sequence[_Node], opening: str) -> Iterator[Pump]:
    samples = [_samples([node]) for node in nodes]
    for at, node in enumerate(nodes):
        for repeated in samples[at]:
            yield Pump(opening, repeated)
            yield Pump("", repeated)
        if at:
            for pair in itertools.product(samples[at - 1][:3], samples[at][:3]):
                yield Pump(opening, "".join(pair))
        for inner in _parts(node):
            yield from _pumps(inner, opening)
        opening += samples[at][0] if samples[at] else ""


def _parts(node: _Node) -> list[list[_Node]]:
    """Return the sequences inside a node."""
    kind, value = node
    if kind in _REPEATS:
        return [list(value[2])]
    if kind is sre.SUBPATTERN:
        return [list(value[3])]
    if kind is sre.ATOMIC_GROUP:
        return [list(value)]
    if kind is sre.BRANCH:
        return [list(each) for each in value[1]]
    if kind in (sre.ASSERT, sre.ASSERT_NOT):
        return [list(value[1])]
    return []


def _samples(nodes: Iterable[_Node]) -> list[str]:
    """Return some texts that a sequence accepts, as far as one can say without looking around."""
    found = [""]
    for node in nodes:
        ways = _ways(node)
        if not ways:
            continue
        paired = itertools.product(found[:4], ways) if len(ways) < len(found) else zip(itertools.cycle(found), ways)
        found = list(dict.fromkeys("".join(each) for each in paired))[:_MOST]
    return found


def _ways(node: _Node) -> list[str]:
    kind, value = node
    if kind is sre.LITERAL:
        return [chr(value)]
    if kind in (sre.IN, sre.NOT_LITERAL, sre.ANY):
        return _characters(node)[:_MOST]
    if kind is sre.BRANCH:
        each = [_samples(branch)[:3] for branch in value[1]]
        return list(itertools.chain.from_iterable(each))[: 4 * _MOST]
    if kind in _REPEATS:
        least, most, body = value
        return [sample * max(least, min(1, most)) for sample in _samples(body)]
    looks_back = kind is sre.ASSERT and value[0] < 0
    parts = _parts(node) if kind in (sre.SUBPATTERN, sre.ATOMIC_GROUP) or looks_back else []
    return [sample for part in parts for sample in _samples(part)]


def _characters(node: _Node) -> list[str]:
    """Return characters of the pool that a set accepts, and the ends of its ranges."""
    kind, value = node
    if kind is sre.ANY:
        return list(_POOL)
    if kind is sre.NOT_LITERAL:
        return [each for each in _POOL if each != chr(value)]
    negated = value[0][0] is sre.NEGATE
    own = [chr(code) for item in value for code in _codes(item)]
    is_in = [each for each in dict.fromkeys((*own, *_POOL)) if any(_accepts(item, each) for item in value) != negated]
    return is_in[:_MOST] + [each for each in "a 中0" if each in is_in]


def _codes(item: _Node) -> list[int]:
    kind, value = item
    if kind is sre.LITERAL:
        return [value]
    return list(value) if kind is sre.RANGE else []


def _accepts(item: _Node, character: str) -> bool:
    kind, value = item
    if kind is sre.LITERAL:
        return chr(value) == character
    if kind is sre.RANGE:
        return value[0] <= ord(character) <= value[1]
    if kind is sre.CATEGORY:
        return re.fullmatch(_CATEGORIES[value], character) is not None
    return False
