"""Separation of thinking from the answer, in a text that a model may still be writing."""

from __future__ import annotations

import re

from .growing_text import Delta, Paragraphs

_OPENING, _CLOSING = "<think>", "</think>"
_TAG = re.compile(f"({_OPENING}|{_CLOSING})")


class ThinkingText:
    """A text with thinking in it, fed in pieces that may be cut anywhere, even inside a tag, in linear time.

    The answer is what follows the last ``</think>``, up to an unclosed ``<think>``; all else is thinking. A
    ``</think>`` without its opening tag turns the answer so far into thinking. Tags are part of neither, and a possible
    beginning of a tag is held back until the next piece.

    >>> text = ThinkingText()
    >>> text.feed("<think>six by nine</thi")
    >>> text.thinking, text.answer
    ('six by nine', '')
    >>> text.feed("nk> 42")
    >>> text.thinking, text.answer
    ('six by nine', '42')
    """

    def __init__(self) -> None:
        self._answer = Paragraphs()
        self._thinking = Paragraphs()
        self._everything = Paragraphs()
        self._is_open = False
        self._answer_is_void = False
        self._held = ""  # may be the beginning of a tag

    @property
    def answer(self) -> str:
        """The answer so far, stripped."""
        return str(self._answer)

    @property
    def thinking(self) -> str:
        """The thinking so far, one paragraph a part, stripped."""
        return str(self._thinking)

    @property
    def everything(self) -> str:
        """The whole text in its order, one paragraph a part, without the tags."""
        return str(self._everything)

    def feed(self, piece: str) -> None:
        """Take the next piece of the text."""
        parts = _TAG.split(self._held + piece)
        end = _unfinished_tag_at(parts[-1])
        parts[-1], self._held = parts[-1][:end], parts[-1][end:]
        for part in parts:
            self._take(part)

    def finish(self) -> None:
        """End the text: a held-back beginning of a tag becomes part of it."""
        self._take(self._held)
        self._held = ""

    def new_answer(self) -> Delta:
        """Return what the answer has gained since the last call."""
        delta = Delta(self._answer.take(), restarted=self._answer_is_void)
        self._answer_is_void = False
        return delta

    def new_thinking(self) -> Delta:
        """Return what the thinking has gained since the last call; it never starts over."""
        return Delta(self._thinking.take())

    def new_everything(self) -> Delta:
        """Return what the text without its tags has gained since the last call."""
        return Delta(self._everything.take())

    def _take(self, part: str) -> None:
        if part in (_OPENING, _CLOSING):
            self._thinking.end_paragraph()
            self._everything.end_paragraph()
            if part == _CLOSING and self._answer:
                self._thinking.feed(str(self._answer))
                self._thinking.end_paragraph()
                self._answer_is_void = True
            if part == _CLOSING:
                self._answer = Paragraphs()
            self._is_open = part == _OPENING
        else:
            (self._thinking if self._is_open else self._answer).feed(part)
            self._everything.feed(part)


def whole_text(text: str) -> ThinkingText:
    """Parse a complete text."""
    whole = ThinkingText()
    whole.feed(text)
    whole.finish()
    return whole


def split_thinking(text: str) -> tuple[str, str]:
    """Split a complete text into (answer, thinking), both stripped.

    >>> split_thinking("<think>six by nine</think> 42")
    ('42', 'six by nine')
    """
    whole = whole_text(text)
    return whole.answer, whole.thinking


def _unfinished_tag_at(text: str) -> int:
    """Return where an unfinished tag starts at the end of a text that holds no tag; its length if none does."""
    start = text.rfind("<")
    is_unfinished = start >= 0 and (_OPENING.startswith(text[start:]) or _CLOSING.startswith(text[start:]))
    return start if is_unfinished else len(text)
