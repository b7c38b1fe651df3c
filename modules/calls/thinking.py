"""Separation of thinking from the answer, in a text that a model may still be writing."""

from __future__ import annotations

import json
import re

from .growing_text import Delta, Paragraphs
from .stops import UntilStop

_OPENING, _CLOSING = "<think>", "</think>"
_FENCE = "```"
_TAG = re.compile(f"({_OPENING}|{_CLOSING})")


class ThinkingText:
    """A text with thinking in it, fed in pieces that may be cut anywhere, even inside a tag, in linear time.

    The answer is what follows the last ``</think>``, up to an unclosed ``<think>``; all else is thinking. A
    ``</think>`` without its opening tag turns the answer so far into thinking. Tags are part of neither, and a possible
    beginning of a tag is held back until the next piece. The answer ends before its first stop text.

    >>> text = ThinkingText()
    >>> text.feed("<think>six by nine</thi")
    >>> text.thinking, text.answer
    ('six by nine', '')
    >>> text.feed("nk> 42")
    >>> text.thinking, text.answer
    ('six by nine', '42')
    """

    def __init__(self, stop: tuple[str, ...] = ()) -> None:
        """Let the answer, not the thinking, end before the first text of ``stop``."""
        self._stop = stop
        self._until_stop = UntilStop(stop)
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

    @property
    def is_stopped(self) -> bool:
        """Whether a stop text has ended the answer."""
        return self._until_stop.is_ended

    def feed(self, piece: str) -> None:
        """Take the next piece of the text."""
        parts = _TAG.split(self._held + piece)
        end = _unfinished_tag_at(parts[-1])
        parts[-1], self._held = parts[-1][:end], parts[-1][end:]
        for part in parts:
            self._take(part)

    def finish(self) -> None:
        """End the text: a held-back beginning of a tag counts as text."""
        self._take(self._held)
        self._held = ""
        self._answer.feed(self._until_stop.finish())

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
            self._answer.feed(self._until_stop.finish())
            if part == _CLOSING:
                self._void_answer()
            self._is_open = part == _OPENING
        else:
            if self._is_open:
                self._thinking.feed(part)
            else:
                self._answer.feed(self._until_stop.feed(part))
            self._everything.feed(part)

    def _void_answer(self) -> None:
        """Make thinking of the answer so far, with what stood beyond a stop text."""
        self._answer.feed(self._until_stop.beyond)
        if self._answer:
            self._thinking.feed(str(self._answer))
            self._thinking.end_paragraph()
            self._answer_is_void = True
        self._answer, self._until_stop = Paragraphs(), UntilStop(self._stop)


def whole_text(text: str, stop: tuple[str, ...] = (), *, is_json: bool = False) -> ThinkingText:
    """Parse a complete text whose answer ends before the first text of ``stop``.

    Where JSON was asked for, a tag inside the object is text, if the object is sound and all that is behind the
    beginning of the text, or behind its first ``</think>``.
    """
    start = _object_at(text) if is_json else len(text)
    whole = ThinkingText(stop)
    whole.feed(text[:start])
    whole._take(text[start:])
    whole.finish()
    return whole


def split_thinking(text: str, *, is_json: bool = False) -> tuple[str, str]:
    """Split a complete text into (answer, thinking), both stripped, as ``whole_text`` does.

    >>> split_thinking("<think>six by nine</think> 42")
    ('42', 'six by nine')
    """
    whole = whole_text(text, is_json=is_json)
    return whole.answer, whole.thinking


def unfenced(text: str) -> str:
    """Return a text without the fence in which all of it stands, if there is one."""
    return text.partition("\n")[2].removesuffix(_FENCE) if text.startswith(_FENCE) else text


def _object_at(text: str) -> int:
    """Return where a JSON object with tags in it starts, fenced or not, and takes up the rest; else the length."""
    first_closing = text.find(_CLOSING)
    starts = (0, first_closing + len(_CLOSING)) if first_closing >= 0 else (0,)
    return next((start for start in starts if _TAG.search(text, start) and _is_object(text[start:])), len(text))


def _is_object(text: str) -> bool:
    text = unfenced(text.strip())
    try:
        return text.startswith("{") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _unfinished_tag_at(text: str) -> int:
    """Return where an unfinished tag starts at the end of a text that holds no tag; its length if none does."""
    start = text.rfind("<")
    is_unfinished = start >= 0 and (_OPENING.startswith(text[start:]) or _CLOSING.startswith(text[start:]))
    return start if is_unfinished else len(text)
