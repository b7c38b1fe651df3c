"""Marks for raised and lowered text, which plain text would otherwise join with what stands before it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby, pairwise
from typing import Literal

Script = Literal["", "^", "_"]
"""Text on the line, a superscript, a subscript."""

_ORDINALS = frozenset({"st", "nd", "rd", "th", "er", "re", "ère", "ème"})
_TOKEN = re.compile(r"[-+\u2212\u2013]?\w+(?:[.,]\w+)?")


def with_marks(pieces: Iterable[tuple[str, Script]]) -> str:
    """Join pieces of a line, with a mark before those that are raised or lowered.

    Text that is no single word or number stands in parentheses, and so does what would join with the text behind it.
    Endings of ordinals and signs such as "®" need no mark, nor does a line that is raised as a whole.

    >>> with_marks([("10", ""), ("6", "^"), (" m", "")])
    '10^6 m'
    >>> with_marks([("H", ""), ("2", "_"), ("O, x", ""), ("n+1", "^"), (", the 4", ""), ("th", "^")])
    'H_2O, x^(n+1), the 4th'
    >>> with_marks([("x", ""), ("2", "^"), ("3", "")])
    'x^(2)3'
    """
    runs = [(script, "".join(text for text, _ in group)) for script, group in groupby(pieces, key=lambda each: each[1])]
    if not any(text.strip() for script, text in runs if not script):
        return "".join(text for _, text in runs)
    joined: list[str] = []
    for (script, text), (next_script, after) in pairwise([*runs, ("", "")]):
        before = joined[-1][-1:] if joined else ""
        joined.append(_marked(script, text, before, "" if next_script else after[:1]) if script else text)
    return "".join(joined)


def _marked(script: str, text: str, before: str, after: str) -> str:
    core = text.strip()
    if not any(map(str.isalnum, core)) or (script == "^" and before.isdigit() and core.lower() in _ORDINALS):
        return text
    lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    joins = not tail and after.isalnum() and core[-1].isalnum() and core[-1].isdigit() == after.isdigit()
    return f"{lead}{script}{core}{tail}" if _TOKEN.fullmatch(core) and not joins else f"{lead}{script}({core}){tail}"
