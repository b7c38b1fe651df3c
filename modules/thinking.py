"""Thinking apart from the answer, in a text that may still be being written."""

from __future__ import annotations

import re

_OPENING, _CLOSING = "<think>", "</think>"
_TAG = re.compile(f"({_OPENING}|{_CLOSING})")
_PARAGRAPH = "\n\n"


class ThinkingText:
    """A text with thinking in it, taken in pieces that may be cut anywhere, also inside a tag.

    The answer is what follows the last ``</think>``, up to a ``<think>`` that is not closed; all else is thinking.
    Models may leave out the opening tag, so that what was the answer turns out to be thinking. No tag is part of
    either, nor the beginning of one while the next piece may complete it.

    >>> text = ThinkingText()
    >>> text.feed("<think>six by nine</thi")
    >>> text.thinking, text.answer
    ('six by nine', '')
    >>> text.feed("nk> 42")
    >>> text.thinking, text.answer
    ('six by nine', '42')
    """

    def __init__(self) -> None:
        self._closed = ""  # what the last closing tag has made thinking
        self._answer = ""
        self._opened = ""  # what follows an opening tag that is not closed
        self._is_open = False
        self._held = ""  # may be the beginning of a tag

    @property
    def answer(self) -> str:
        """The answer so far, stripped."""
        return self._answer.strip()

    @property
    def thinking(self) -> str:
        """The thinking so far, a paragraph for each part, stripped."""
        return _joined(self._closed, self._opened)

    @property
    def everything(self) -> str:
        """All of the text in its order, a paragraph for each part, without the tags."""
        return _joined(self._closed, self._answer, self._opened)

    def feed(self, piece: str) -> None:
        """Take the next piece of the text."""
        parts = _TAG.split(self._held + piece)
        end = _unfinished_tag_at(parts[-1])
        parts[-1], self._held = parts[-1][:end], parts[-1][end:]
        for part in parts:
            self._take(part)

    def finish(self) -> None:
        """The text ends here: what was held back as the beginning of a tag is none."""
        self._take(self._held)
        self._held = ""

    def _take(self, part: str) -> None:
        if part == _CLOSING:
            self._closed, self._answer, self._opened, self._is_open = self.everything, "", "", False
        elif part == _OPENING:
            self._opened += _PARAGRAPH
            self._is_open = True
        elif self._is_open:
            self._opened += part
        else:
            self._answer += part


def whole_text(text: str) -> ThinkingText:
    """A text that has been written to its end."""
    whole = ThinkingText()
    whole.feed(text)
    whole.finish()
    return whole


def split_thinking(text: str) -> tuple[str, str]:
    """(answer, thinking) of a whole text, as ``ThinkingText`` tells them apart.

    >>> split_thinking("<think>six by nine</think> 42")
    ('42', 'six by nine')
    """
    whole = whole_text(text)
    return whole.answer, whole.thinking


def _joined(*parts: str) -> str:
    return _PARAGRAPH.join(filter(None, map(str.strip, parts)))


def _unfinished_tag_at(text: str) -> int:
    """Where a text that holds no tag ends, or where the beginning of one stands at its end."""
    start = text.rfind("<")
    is_unfinished = start >= 0 and (_OPENING.startswith(text[start:]) or _CLOSING.startswith(text[start:]))
    return start if is_unfinished else len(text)
