"""Stop texts, at which the answer of a model ends, in a text that a model may still be writing."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable


def check_stops(stop: object) -> None:
    """Check the stop texts of a call.

    Raises:
        ValueError: They are no tuple of texts, or one of them is empty.
    """
    if not isinstance(stop, tuple) or not all(isinstance(text, str) and text for text in stop):
        raise ValueError(f'stop is a tuple of texts that are not empty, such as ("Observation:",); got {stop!r}')


class StopTextFilter:
    """The part of a growing text before its first stop text, fed in pieces that may be cut anywhere, in linear time.

    The possible beginning of a stop text is held back until the next piece. Stop texts of white space alone count from
    the first visible character on: with ``"\\n"`` the text is its first line that is not empty.

    >>> text = StopTextFilter(("Observation:",))
    >>> text.feed("Action: Search[KS-1] Obs"), text.feed("ervation: Delta")
    ('Action: Search[KS-1] ', '')
    >>> text.is_ended
    True
    """

    def __init__(self, stop: tuple[str, ...]) -> None:
        self._stop = stop
        self._has_begun = False
        self._held = ""
        self._beyond: list[str] = []

    @property
    def is_ended(self) -> bool:
        """True once a stop text was found."""
        return bool(self._beyond)

    @property
    def beyond(self) -> str:
        """The text from the first stop text on; ``""`` without one."""
        return "".join(self._beyond)

    def feed(self, piece: str) -> str:
        """Take the next piece, and return what is now known to stand before any stop text."""
        if not self._stop:
            return piece
        if self._beyond:
            self._beyond.append(piece)
            return ""
        return self._take(self._held + piece, is_whole=False)

    def finish(self) -> str:
        """End the text, and return its held-back end."""
        return self._take(self._held, is_whole=True) if self._held else ""

    def _take(self, text: str, *, is_whole: bool) -> str:
        found = self._found_at(text)
        held = len(text) if is_whole else self._unfinished_at(text)
        if found is not None and found <= held:
            self._held, self._beyond = "", [text[found:]]
            return text[:found]
        self._held = text[held:]
        self._has_begun = self._has_begun or not (not held or text[:held].isspace())
        return text[:held]

    def _found_at(self, text: str) -> int | None:
        begun_at = 0 if self._has_begun else len(text) - len(text.lstrip())
        visible, blank = _patterns(self._stop)
        matches = (visible and visible.search(text), blank and blank.search(text, begun_at))
        return min((match.start() for match in matches if match), default=None)

    def _unfinished_at(self, text: str) -> int:
        """Return where the earliest unfinished stop text starts at the end of the text; its length if none does."""
        for size in range(min(max(map(len, self._stop)) - 1, len(text)), 0, -1):
            end = text[-size:]
            if any(len(stop) > size and stop.startswith(end) for stop in self._stop):
                return len(text) - size
        return len(text)


@functools.lru_cache
def _patterns(stop: tuple[str, ...]) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    """Return the patterns of the stop texts with a visible character, and of those without one."""
    return _any_of(text for text in stop if not text.isspace()), _any_of(text for text in stop if text.isspace())


def _any_of(texts: Iterable[str]) -> re.Pattern[str] | None:
    pattern = "|".join(map(re.escape, texts))
    return re.compile(pattern) if pattern else None
