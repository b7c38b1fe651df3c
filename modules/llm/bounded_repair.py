"""Repairing broken JSON with a bound on the work: ``json_repair`` takes minutes for some texts of 30 kB."""

from __future__ import annotations

from typing import Any, SupportsIndex

from json_repair.json_parser import JSONParser
from json_repair.utils.constants import JSONReturnType

MAX_STEPS = 150_000
"""Characters that the parser may look at, again and again included: at most 0.3 s."""


class TooMuchWork(ValueError):
    """The text is broken in a way that would take too long to repair."""


def repaired_json(text: str, *, max_steps: int = MAX_STEPS) -> object:
    """What a text that is almost JSON means, as ``json_repair.loads`` reads it.

    Raises:
        TooMuchWork: It was not read after looking at ``max_steps`` characters.
        RecursionError: It is nested too deeply; check that before.
        ValueError: It holds a number that is too long.
    """
    return _BoundedParser(text, max_steps).parse()


class _Steps:
    """How many are left; shared by all texts that the parser makes of the one it was given."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise TooMuchWork("it is broken in a way that takes too long to repair")


class _CountedText(str):
    """A text that counts how often it is looked into."""

    __slots__ = ("steps",)
    steps: _Steps

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = str.__getitem__(self, key)
        self.steps.take(len(found) // 16 + 1)
        return found


class _BoundedParser(JSONParser):
    """The library's parser on a text that counts; the parser reads and replaces it as ``json_str``."""

    def __init__(self, text: str, max_steps: int) -> None:
        self._steps = _Steps(max_steps)
        self._arrays = 0
        super().__init__(text, None, False)

    def parse_array(
        self, schema: dict[str, Any] | bool | None = None, path: str = "$", closing_delimiter: str = "]"
    ) -> list[JSONReturnType]:
        self._arrays += 1
        self._steps.take(self._arrays // 8)  # the parser looks through what it has merged into one array so far
        return super().parse_array(schema, path, closing_delimiter)

    @property
    def json_str(self) -> str:
        return self._text

    @json_str.setter
    def json_str(self, text: str) -> None:
        self._text = _CountedText(text)
        self._text.steps = self._steps
