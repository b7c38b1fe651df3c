"""Texts that grow while a model writes them, and listeners that receive them piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypedDict

PARAGRAPH = "\n\n"


class Delta(NamedTuple):
    """A piece added to a growing text.

    >>> said = ""
    >>> for text, restarted in (Delta("six by"), Delta(" nine"), Delta("42", restarted=True)):
    ...     said = text if restarted else said + text
    >>> said
    '42'
    """

    text: str
    """The piece to append; may be ``""`` where ``restarted`` is set."""
    restarted: bool = False
    """True where all earlier pieces are void and ``text`` is the new beginning."""


TextListener = Callable[[Delta], None]
"""A callback for each piece of a text, in order."""


class TextListeners(TypedDict, total=False):
    """The keyword arguments of ``ChatLLM.complete`` that listen to a reply."""

    on_text: TextListener | None
    on_thinking: TextListener | None


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
        """End the present paragraph; the next text starts a new one."""
        self._is_new = True

    def take(self) -> str:
        """Return what has been added since the last call."""
        new = "".join(self._pieces[self._taken :])
        self._taken = len(self._pieces)
        return new


class _Channel:
    """One listener and the text that it has received."""

    def __init__(self, listener: TextListener | None) -> None:
        self.listener = listener
        self._sent: list[str] = []

    def add(self, delta: Delta | None) -> None:
        if self.listener is None or delta is None:
            return
        restarted = delta.restarted and bool(self._sent)
        if restarted:
            self._sent = []
        if delta.text:
            self._sent.append(delta.text)
        if delta.text or restarted:
            self.listener(Delta(delta.text, restarted))

    def settle(self, text: str) -> None:
        if self.listener is None:
            return
        sent = "".join(self._sent)
        continues = text.startswith(sent)
        self.add(Delta(text[len(sent) :] if continues else text, restarted=not continues))


class Listeners:
    """The listeners to a call's thinking and answer."""

    def __init__(self, *, on_text: TextListener | None = None, on_thinking: TextListener | None = None) -> None:
        """Listen to the answer, the thinking, or both; None for a text without a listener."""
        self.given: TextListeners = {"on_text": on_text, "on_thinking": on_thinking}
        self._text = _Channel(on_text)
        self._thinking = _Channel(on_thinking)

    @property
    def present(self) -> bool:
        """True if there is a listener."""
        return self._text.listener is not None or self._thinking.listener is not None

    def start_over(self) -> None:
        """Void all text sent so far, before the next attempt."""
        self._thinking.add(Delta("", restarted=True))
        self._text.add(Delta("", restarted=True))

    def add(self, *, text: Delta | None = None, thinking: Delta | None = None) -> None:
        """Send the listeners the next pieces; None for no change."""
        self._thinking.add(thinking)
        self._text.add(text)

    def settle(self, *, text: str, thinking: str) -> None:
        """Send what is still missing of the final texts; a text that differs from what was sent starts over."""
        self._thinking.settle(thinking)
        self._text.settle(text)
