"""Texts that grow while a model writes them: who is told of it, and what has been added since."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Listeners:
    """Those who are told of a call's thinking and answer, each whenever its text has changed."""

    def __init__(
        self, *, on_text: Callable[[str], None] | None = None, on_thinking: Callable[[str], None] | None = None
    ) -> None:
        """Each is called with the whole text so far; None for one that nobody wants."""
        self._on_text = on_text
        self._on_thinking = on_thinking
        self._text = self._thinking = ""

    @property
    def present(self) -> bool:
        """Whether anyone listens."""
        return self._on_text is not None or self._on_thinking is not None

    def tell(self, *, text: str, thinking: str) -> None:
        """Pass on what the two texts are now. A text that has become empty is told too: it starts over."""
        if thinking != self._thinking:
            self._thinking = thinking
            if self._on_thinking is not None:
                self._on_thinking(thinking)
        if text != self._text:
            self._text = text
            if self._on_text is not None:
                self._on_text(text)


class Delta(NamedTuple):
    """What one snapshot of a growing text adds to the one before."""

    text: str
    """The piece to append; the whole snapshot where it started over."""
    restarted: bool
    """Whether all that came before is void."""


class Deltas:
    """Turns snapshots of a growing text into what each of them adds.

    >>> deltas = Deltas()
    >>> for snapshot in ("six", "six by nine", "42"):
    ...     deltas.feed(snapshot)
    Delta(text='six', restarted=False)
    Delta(text=' by nine', restarted=False)
    Delta(text='42', restarted=True)
    """

    def __init__(self) -> None:
        self._last = ""

    def feed(self, snapshot: str) -> Delta:
        """What the next snapshot adds; ``""`` if nothing."""
        continues = snapshot.startswith(self._last)
        delta = Delta(text=snapshot[len(self._last) :] if continues else snapshot, restarted=not continues)
        self._last = snapshot
        return delta
