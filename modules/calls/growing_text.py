"""Texts that grow while a model writes them, and those who listen: they get pieces, not the whole text each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

PARAGRAPH = "\n\n"


class Delta(NamedTuple):
    """What a growing text gains.

    >>> said = ""
    >>> for text, restarted in (Delta("six by"), Delta(" nine"), Delta("42", restarted=True)):
    ...     said = text if restarted else said + text
    >>> said
    '42'
    """

    text: str
    """The piece to append; may be ``""`` where ``restarted`` is set."""
    restarted: bool = False
    """True where all that came before is void, and ``text`` is how the text begins anew."""


TextListener = Callable[[Delta], None]
"""Is called with each piece of a text, in order."""


class Paragraphs:
    """A text of stripped paragraphs that only ever grows, in time linear in its length."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._taken = 0
        self._gap: list[str] = []  # white space that counts only once something follows
        self._is_new = True  # nothing of the present paragraph is there yet

    def __str__(self) -> str:
        return "".join(self._pieces)

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def feed(self, text: str) -> None:
        """Add to the present paragraph."""
        if self._is_new:
            text = text.lstrip()
            if not text:
                return
            self._gap = [PARAGRAPH] if self._pieces else []
            self._is_new = False
        body = text.rstrip()
        if body:
            self._pieces += [*self._gap, body]
            self._gap = []
        if len(body) < len(text):
            self._gap.append(text[len(body) :])

    def end_paragraph(self) -> None:
        """What follows begins a new one."""
        self._is_new = True

    def take(self) -> str:
        """What has been added since the last call of this."""
        new = "".join(self._pieces[self._taken :])
        self._taken = len(self._pieces)
        return new


class _Channel:
    """What one listener has been given."""

    def __init__(self, listener: TextListener | None) -> None:
        self.listener = listener
        self._given: list[str] = []

    def add(self, delta: Delta | None) -> None:
        if self.listener is None or delta is None:
            return
        restarted = delta.restarted and bool(self._given)
        if restarted:
            self._given = []
        if delta.text:
            self._given.append(delta.text)
        if delta.text or restarted:
            self.listener(Delta(delta.text, restarted))

    def settle(self, text: str) -> None:
        if self.listener is None:
            return
        given = "".join(self._given)
        continues = text.startswith(given)
        self.add(Delta(text[len(given) :] if continues else text, restarted=not continues))


class Listeners:
    """Those who listen to a call's thinking and answer."""

    def __init__(self, *, on_text: TextListener | None = None, on_thinking: TextListener | None = None) -> None:
        """None for a text that is not listened to."""
        self._text = _Channel(on_text)
        self._thinking = _Channel(on_thinking)

    @property
    def present(self) -> bool:
        """True if there is a listener."""
        return self._text.listener is not None or self._thinking.listener is not None

    def start_over(self) -> None:
        """Void all that was given, as another attempt begins."""
        self._thinking.add(Delta("", restarted=True))
        self._text.add(Delta("", restarted=True))

    def add(self, *, text: Delta | None = None, thinking: Delta | None = None) -> None:
        """Pass pieces on; None for no change."""
        self._thinking.add(thinking)
        self._text.add(text)

    def settle(self, *, text: str, thinking: str) -> None:
        """Give what is still missing of the final texts; one that turned out otherwise starts over."""
        self._thinking.settle(thinking)
        self._text.settle(text)
