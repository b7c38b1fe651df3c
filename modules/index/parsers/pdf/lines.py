"""Lines of a page as one text, with words joined that a line end has divided."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_MENDED = 2_000
"""Longest line at whose end a word is mended."""
_HYPHENS = ("-", "\u2010", "\u00ad")
_FIRST_WORD = re.compile(r"\S+")
_COMPOUNDS_WORDS = """
all anti cross double ex far first fourth full half hard high ill in ink inter left long low mid multi
near non old on one open over post pre quasi right second self semi short single six so soft ten third
three top two under up user well wide
"""
_COMPOUNDS = frozenset(_COMPOUNDS_WORDS.split())
"""First parts of English words that mostly keep their hyphen."""


Line = tuple[str, bool]
"""A line, and whether a new block begins with it."""


def joined_lines(lines: Iterable[Line]) -> str:
    """Return lines as a text; a blank line is before each that begins a block.

    The hyphen at the end of a line goes if the word goes on in the next line in small letters, unless the word has
    another hyphen, begins as compounds do, or stands elsewhere in the text with its hyphen.
    """
    blocks = [(line.strip(), is_new) for line, is_new in lines if line.strip()]
    known = {word.strip(".,;:!?()\"'").lower() for line, _ in blocks for word in line.split() if "-" in word}
    done: list[str] = []
    for line, is_new in blocks:
        if done and not is_new and done[-1].endswith(_HYPHENS) and len(done[-1]) < _MAX_MENDED:
            done[-1], line = _mended(done[-1], line, known)  # noqa: PLW2901
        if line:
            done.append(("\n" if is_new and done else "") + line)
    return "\n".join(done).replace("\u00ad", "")


def _mended(before: str, line: str, known: set[str]) -> tuple[str, str]:
    """Return two lines with the word that they divide at the end of the first one."""
    found = _FIRST_WORD.match(line)
    head = before.rsplit(maxsplit=1)[-1]
    stem = head[:-1].lstrip("([\"'“„")
    if found is None or not stem or not stem[-1].isalnum() or not found[0][0].isalnum():
        return before, line
    rest = found[0]
    whole = f"{stem}-{rest}".strip(".,;:!?()\"'").lower()
    is_soft = head[-1] == "\u00ad" or (
        rest[0].islower()
        and stem[-1].isalpha()
        and "-" not in stem
        and stem.lower() not in _COMPOUNDS
        and whole not in known
    )
    return (before[:-1] if is_soft else before) + rest, line[found.end() :].strip()
