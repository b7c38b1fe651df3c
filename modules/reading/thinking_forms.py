"""The forms in which models write their thinking and the end of a reply, where their server leaves that in the text."""

from __future__ import annotations

import re

from .harmony import ANSWER, STARTS, THOUGHT, Harmony

OPENING, CLOSING = "<think>", "</think>"
_NAMES = ("think", "thinking", "thought", "reasoning", "seed:think")
_PAIRS = {
    **{f"<{name}>": f"</{name}>" for name in _NAMES},
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
}
"""What ends thinking, by what begins it, in any case."""
_OPENER = re.compile(rf"<({'|'.join(_NAMES)})(?:\s[^<>]{{0,100}})?>|\[think\]|◁think▷", re.IGNORECASE)
_MAY_OPEN = re.compile(rf"<(?:{'|'.join(_NAMES)})\s[^<>]{{0,100}}", re.IGNORECASE)
_BARE = re.compile(r"analysis(?=[^\W\d_])")
"""The beginning of harmony whose marks the server has taken out; the answer then follows ``assistantfinal``."""
_BARE_ANSWER = "assistantfinal"
_USUAL = re.compile(f"{OPENING}|{CLOSING}")
_OF_HARMONY = re.compile(f"[{THOUGHT}{ANSWER}]")
_END_MARKS = (
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "</s>",
)
_MOST_MARKS = 3
"""Tokens at the end of a reply that are taken off."""
_MENTIONING = frozenset(" \t\"'`“‘«「(=,:：、")
"""What stands before a token that an answer speaks of."""


_ANNOUNCING = frozenset(":：")
"""What stands before the line of one."""
_STRUCK = re.compile(r"<s[\s>]")


class ThinkingForm:
    """The form in which a reply writes its thinking, found out at its beginning, in linear time.

    The text is fed in pieces that may be cut anywhere. Elsewhere than at the beginning other tags than ``<think>`` are
    text, since answers may be about them. What may become a tag is held back.

    >>> form = ThinkingForm()
    >>> form.feed("[THI"), form.feed("NK]six by nine[/THINK]54")
    ('', '<think>six by nine[/THINK]54')
    >>> [form.opens(tag) for tag in form.tag.findall("<think> and [/THINK]")]
    [True, False]
    """

    def __init__(self) -> None:
        self.tag = _USUAL
        """What begins or ends thinking in the text that ``feed`` returns."""
        self.is_pair = False
        """Whether the reply began with such a tag other than ``<think>``, which may be a text about it."""
        self.is_marked = False
        """Whether its marks are certain: they stand in no quotation."""
        self._tags: tuple[str, ...] = (OPENING, CLOSING)
        self._harmony: Harmony | None = None
        self._held = ""
        self._is_bare = False
        self._is_over = False

    def opens(self, tag: str) -> bool:
        """Return whether a tag of this form begins thinking."""
        return tag.lower() in _PAIRS or tag == THOUGHT

    def unfinished_at(self, text: str, at: int) -> int:
        """Return where an unfinished tag starts at the end of a text with none from ``at`` on; its length if none."""
        if self.is_marked:
            return len(text)
        for start in range(max(at, len(text) - max(map(len, self._tags))), len(text)):
            if text[start] in "<[◁" and any(tag.startswith(text[start:].lower()) for tag in self._tags):
                return start
        return len(text)

    def feed(self, piece: str) -> str:
        """Take the next piece, and return what is known of the text, in which ``tag`` finds the tags."""
        if self._harmony is not None:
            return self._harmony.feed(piece)
        if self._is_bare:
            return self._bare(piece)
        return piece if self._is_over or not piece else self._begin(piece)

    def finish(self) -> str:
        """End the text, and return its held-back end."""
        held = self._held if self._harmony is None else self._harmony.finish()
        self._held, self._harmony, self._is_bare, self._is_over = "", None, False, True
        return held

    def _begin(self, piece: str) -> str:
        text, self._held = self._held + piece, ""
        begun = text.lstrip()
        blank = text[: len(text) - len(begun)]
        if begun.startswith(STARTS):
            self._harmony, self.tag, self.is_marked = Harmony(), _OF_HARMONY, True
            return blank + self._harmony.feed(begun)
        if found := _OPENER.match(begun):
            self._is_over = True
            if found[0] == OPENING:
                return text
            opening = f"<{found[1].lower()}>" if found[1] else found[0].lower()
            self._tags, self.is_pair = (OPENING, CLOSING, opening, _PAIRS[opening]), True
            self.tag = re.compile("|".join(map(re.escape, self._tags)), re.IGNORECASE)
            return blank + OPENING + begun[found.end() :]
        if _BARE.match(begun):
            self.is_pair = self._is_bare = True
            return blank + OPENING + self._bare(begun.removeprefix("analysis"))
        small = begun.lower()
        if any(each.startswith(small) for each in (*STARTS, *_PAIRS, "analysis")) or _MAY_OPEN.fullmatch(begun):
            self._held = begun
            return blank
        self._is_over = True
        return text

    def _bare(self, piece: str) -> str:
        text, self._held = self._held + piece, ""
        before, found, rest = text.partition(_BARE_ANSWER)
        if found:
            self._is_bare, self._is_over = False, True
            return f"{before}{CLOSING}{rest}"
        kept = max(len(text) - len(_BARE_ANSWER), 0)
        self._held = text[kept:]
        return text[:kept]


def without_end_marks(text: str) -> str:
    """Return an answer without the tokens that end a reply, which some servers leave at its end.

    One that the answer speaks of stays: alone, behind a blank, a comma, a colon or a quotation mark, or as the end of
    ``<s>``.

    >>> without_end_marks("54<|im_end|>"), without_end_marks("It is <|im_end|>")
    ('54', 'It is <|im_end|>')
    """
    for _ in range(_MOST_MARKS):
        mark = next((each for each in _END_MARKS if text.endswith(each)), "")
        before = text.removesuffix(mark)
        is_spoken_of = not before or before[-1] in _MENTIONING or before.rstrip()[-1:] in _ANNOUNCING
        if not mark or is_spoken_of or (mark == "</s>" and _STRUCK.search(before)):
            break
        text = before.rstrip()
    return text
