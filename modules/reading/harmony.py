"""Replies in the form that OpenAI calls harmony: messages in channels, of which ``final`` holds the answer."""

from __future__ import annotations

import re

THOUGHT, ANSWER = "\ufdd0", "\ufdd1"
"""What the translated text has where thinking begins, and where the answer does; no character of any text."""
_NONE = {ord(THOUGHT): None, ord(ANSWER): None}
STARTS = ("<|start|>assistant", "<|channel|>analysis", "<|channel|>commentary", "<|channel|>final")
_TO = r"(?: to=[\w.]{1,40}+)?+"
_ROLE, _CHANNEL = rf"<\|start\|>(?P<role>[\w.]{{1,40}}+){_TO}", rf"<\|channel\|>\s?+(?P<channel>\w{{1,20}}+){_TO}"
_BEGINS = re.compile(
    rf"(?:<\|(?:end|return|call)\|>\s{{0,9}}+(?:assistant(?=<))?+)?"
    rf"(?:{_ROLE}(?:{_CHANNEL})?|{_CHANNEL.replace('channel>', 'only>')})"
    r" ?(?:<\|constrain\|>\s?+\w{1,20}+)?<\|message\|>"
)
"""All that stands before a message, with the end of the one before; less than that is a text about such marks."""
_END = re.compile(r"<\|(?:end|return|call)\|>\s{0,99}+(?=\S)")
"""The end of a message that more follows."""
_BROKEN = re.compile(r"\s*+(?:<\|start\|>)?+(?:assistant\b)?+(?:<\|channel\|>\s?+\w{1,20}+)?+\s*+(?:<\|\w*+\|?)?+")
"""What stands before an answer whose own marks are not whole."""
_LONGEST_BEGINNING = 250
"""Characters at the end of a text that may become the beginning or the end of a message."""


class Harmony:
    """Translates a reply in channels: ``ANSWER`` stands before what ``final`` says, ``THOUGHT`` before the rest.

    The text is fed in pieces that may be cut anywhere, in linear time. Thinking and answers may speak of marks: only
    all marks of a message in their order begin one. What follows the end of the last thought is the answer, if that
    is no message.

    >>> harmony = Harmony()
    >>> text = "<|channel|>analysis<|message|>six<|end|><|start|>assistant<|channel|>final<|message|>54"
    >>> (harmony.feed(text) + harmony.finish()).replace(THOUGHT, "(").replace(ANSWER, ")")
    '(six)54'
    """

    def __init__(self) -> None:
        self._held = ""
        self._says = ""  # what the present message is, THOUGHT or ANSWER; "" before the first one
        self._behind: list[str] | None = None  # the end of a thought, from a mark of its end on
        self._has_thought = False

    def feed(self, piece: str) -> str:
        """Take the next piece, and return what is known of the text, translated."""
        text, self._held = self._held + piece.translate(_NONE), ""
        known: list[str] = []
        at = 0
        for found in _BEGINS.finditer(text):
            known += self._said(text, at, found.start())
            known.append(self._begun(found))
            at = found.end()
        cut = _unfinished_at(text, at)
        self._held = text[cut:]
        return "".join([*known, *self._said(text, at, cut)])

    def finish(self) -> str:
        """End the text, and return its held-back end."""
        known = self._said(self._held, 0, len(self._held))
        behind, self._held, self._behind = "".join(self._behind or ()), "", None
        mark = _END.match(behind)
        answer = behind[_BROKEN.match(behind, mark.end()).end() :] if mark else ""  # type: ignore[union-attr]
        return "".join([*known, f"{ANSWER}{answer}" if answer.strip() else ""])

    def _begun(self, found: re.Match[str]) -> str:
        """Return what stands in place of the marks before a message."""
        channel = found["channel"] or found["only"] or "final"
        before = self._says
        self._says = ANSWER if channel == "final" and found["role"] in (None, "assistant") else THOUGHT
        behind, self._behind = "".join(self._behind or ()), None
        begins = "\n\n" if before == self._says else self._says
        if self._says == ANSWER and not self._has_thought:
            begins = "\n\n" * bool(before)
        self._has_thought |= self._says == THOUGHT
        return f"{behind}{begins}"

    def _said(self, text: str, start: int, end: int) -> list[str]:
        """Return what a part of a message says; what follows the end of a thought may be an answer, and waits."""
        if self._says != THOUGHT:
            return [text[start:end]]
        known: list[str] = []
        for mark in _END.finditer(text, start):
            if mark.start() >= end:
                break
            self._add(text[start : mark.start()], known)
            known += self._behind or ()
            self._behind, start = [], mark.start()
        self._add(text[start:end], known)
        return known

    def _add(self, text: str, known: list[str]) -> None:
        (known if self._behind is None else self._behind).append(text)


def _unfinished_at(text: str, at: int) -> int:
    """Return where marks that are not whole yet stand at the end of a text, from ``at`` on; its length for nowhere."""
    start = text.find("<|", max(at, len(text) - _LONGEST_BEGINNING))
    return start if start >= 0 else len(text) - text.endswith("<")
