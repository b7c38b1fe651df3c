"""Separation of thinking from the answer, in a text that a model may still be writing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..json_objects import object_at
from ..reading.quotations import Quotations
from ..reading.thinking_forms import ThinkingForm
from .growing_text import Delta, Paragraphs
from .stops import StopTextFilter

_MOST_OPEN = 8
"""Objects without an end that are looked through, each of them to the end of the text."""


class ThinkingText:
    """A text with thinking in it, fed in pieces that may be cut anywhere, even inside a tag, in linear time.

    The answer is what follows the last thought, up to an unclosed ``<think>``; all else is thinking. A ``</think>``
    without its opening tag turns the answer so far into thinking, since templates open the thought in the prompt. Tags
    are part of neither. The answer ends before its first stop text.

    A tag is text where it is quoted: in a code span, fenced code or quotation marks, and behind a closed thought, where
    only a ``<think>`` at the beginning of a line opens another. A text that begins with thinking in another form has
    the tags of that form too, see ``ThinkingForm``. The possible beginning of a tag is held back until the next piece,
    and a tag that may be quoted until its quotation ends.

    >>> text = ThinkingText()
    >>> text.feed("<think>six by nine</thi")
    >>> text.thinking, text.answer
    ('six by nine', '')
    >>> text.feed("nk> 42")
    >>> text.thinking, text.answer
    ('six by nine', '42')
    """

    def __init__(self, stop: tuple[str, ...] = (), *, form: ThinkingForm | None = None) -> None:
        """Let the answer, not the thinking, end before the first text of ``stop``; ``form`` has read the text."""
        self._stop = stop
        self._until_stop = StopTextFilter(stop)
        self._answer = Paragraphs()
        self._thinking = Paragraphs()
        self._everything = Paragraphs()
        self._quotations = Quotations()
        self._is_open = False
        self._was_closed = False
        self._has_said = False  # something visible stands behind the newest tag
        self._answer_is_void = False
        self._form = form or ThinkingForm()
        self._held = ""  # begins with a tag, or with what may become one

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
    def may_be_about_tags(self) -> bool:
        """Whether the text begins with a tag other than ``<think>`` that nothing closes."""
        return self._form.is_pair and not self._was_closed

    @property
    def is_stopped(self) -> bool:
        """Whether a stop text has ended the answer."""
        return self._until_stop.is_ended

    def feed(self, piece: str) -> None:
        """Take the next piece of the text."""
        self._advance(self._held + self._form.feed(piece), is_whole=False)

    def feed_text(self, text: str) -> None:
        """Take the next piece, one in which tags are text."""
        self._advance(self._held + self._form.finish(), is_whole=True)
        self._take(text)

    def finish(self) -> None:
        """End the text: a held-back beginning of a tag counts as text."""
        self.feed_text("")
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

    def _advance(self, text: str, *, is_whole: bool) -> None:
        """Take what is decided of a text, and hold the rest back."""
        at, self._held = 0, ""
        for tag in self._form.tag.finditer(text):
            if tag.start() < at:  # inside the quotation of an earlier one
                continue
            self._take(text[at : tag.start()])
            at = tag.start()
            end = self._text_end(text, tag, is_whole=is_whole)
            if end is None:
                self._held = text[at:]
                return
            if end:
                self._take(text[at:end])
            else:
                self._take_tag(tag[0])
            at = end or tag.end()
        end = len(text) if is_whole else self._form.unfinished_at(text, at)
        self._take(text[at:end])
        self._held = text[end:]

    def _text_end(self, text: str, tag: re.Match[str], *, is_whole: bool) -> int | None:
        """Return the end of what is text from a tag on; 0 if it is a tag, None while that is unknown."""
        if self._form.is_marked:
            return 0
        if not self._is_open and self._was_closed and self._has_said:
            opens = self._form.opens(tag[0]) and self._quotations.is_at_line_start and not self._quotations.is_fenced
            return 0 if opens else tag.end()
        return self._quotations.end_after(text, tag.start(), tag.end(), is_whole=is_whole)

    def _take(self, part: str) -> None:
        self._quotations.feed(part)
        self._has_said = self._has_said or not (not part or part.isspace())
        if self._is_open:
            self._thinking.feed(part)
        else:
            self._answer.feed(self._until_stop.feed(part))
        self._everything.feed(part)

    def _take_tag(self, tag: str) -> None:
        self._thinking.end_paragraph()
        self._everything.end_paragraph()
        self._answer.feed(self._until_stop.finish())
        opens = self._form.opens(tag)
        if not opens:
            self._void_answer()
            self._was_closed = True
        self._quotations = Quotations()
        self._is_open = opens
        self._has_said = False

    def _void_answer(self) -> None:
        """Make thinking of the answer so far, with what stood beyond a stop text."""
        self._answer.feed(self._until_stop.beyond)
        if self._answer:
            self._thinking.feed(str(self._answer))
            self._thinking.end_paragraph()
            self._answer_is_void = True
        self._answer, self._until_stop = Paragraphs(), StopTextFilter(self._stop)


def whole_text(text: str, stop: tuple[str, ...] = (), *, is_json: bool = False) -> ThinkingText:
    """Parse a complete text whose answer ends before the first text of ``stop``.

    Where JSON was asked for, a tag that an object quotes is text.
    """
    form = ThinkingForm()
    text = form.feed(text) + form.finish()
    whole, at = ThinkingText(stop, form=form), 0
    for start, end in _quoting_objects(text, form) if is_json and form.tag.search(text) else ():
        whole.feed(text[at:start])
        whole.feed_text(text[start:end])
        at = end
    whole.feed(text[at:])
    whole.finish()
    return whole


def split_thinking(text: str, *, is_json: bool = False) -> tuple[str, str]:
    """Split a complete text into (answer, thinking), both stripped, as ``whole_text`` does.

    >>> split_thinking("<think>six by nine</think> 42")
    ('42', 'six by nine')
    """
    whole = whole_text(text, is_json=is_json)
    return whole.answer, whole.thinking


def _quoting_objects(text: str, form: ThinkingForm) -> Iterator[tuple[int, int]]:
    """Yield start and end of each JSON object outside of thinking that has tags in it, in linear time."""
    tag_or_object = re.compile(rf'{form.tag.pattern}|\{{\s*"', form.tag.flags)
    at, open_ones = 0, 0
    while found := tag_or_object.search(text, at):
        at = found.end()
        if form.opens(found[0]):
            closing = next((tag for tag in form.tag.finditer(text, at) if not form.opens(tag[0])), None)
            at = closing.start() if closing else len(text)
        elif found[0].startswith("{") and open_ones < _MOST_OPEN:
            span = object_at(text, found.start())
            open_ones += not span.is_closed
            if span.is_closed:
                at = span.end
                if form.tag.search(text, span.start, span.end):
                    yield span.start, span.end
