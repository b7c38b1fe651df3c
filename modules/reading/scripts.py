"""Marks for raised and lowered text, which plain text would otherwise join with what stands before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal

Script = Literal["", "^", "_"]
"""Text on the line, a superscript, a subscript."""

APART = "\x04"
"""Stands before and behind a fraction: a space where 3 and 1/2 would join to 31/2, and nothing elsewhere."""

_ORDINALS = frozenset({"st", "nd", "rd", "th", "er", "re", "ère", "ème"})
_JOINING = re.compile(rf"(?<=\w){APART}+(?=[\w(√^_])")
_SLASHES = frozenset("/\u2044\u2215")
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
    >>> with_marks([("3", ""), ("1", "^"), ("/", ""), ("2", "_"), (" inch", "")])
    '3 1/2 inch'
    >>> with_marks([("3", ""), (" 1", "^"), ("/", ""), ("2", "_"), (" inch", "")])
    '3 1/2 inch'
    """
    return _JOINING.sub(" ", _joined(pieces)).replace(APART, "")


def _joined(pieces: Iterable[tuple[str, Script]]) -> str:
    runs = [(script, "".join(text for text, _ in group)) for script, group in groupby(pieces, key=lambda each: each[1])]
    if not any(text.strip() for script, text in runs if not script):
        return "".join(text for _, text in runs)
    runs = list(_with_fractions(runs))
    joined: list[str] = []
    for (script, text), (next_script, after) in pairwise([*runs, ("", "")]):
        before = joined[-1][-1:] if joined else ""
        joined.append(_marked(script, text, before, "" if next_script else after[:1]) if script else text)
    return "".join(joined)


def _with_fractions(runs: Sequence[tuple[Script, str]]) -> Iterator[tuple[Script, str]]:
    """Yield runs, with one on the line for a raised number, a slash and a lowered number."""
    at = 0
    while at < len(runs):
        scripts, texts = zip(*runs[at : at + 3], strict=True)
        if (
            scripts == ("^", "", "_")
            and texts[1] in _SLASHES
            and texts[0].lstrip().isdecimal()
            and texts[2].isdecimal()
        ):
            yield "", f"{APART}{texts[0]}/{texts[2]}{APART}"
            at += 3
        else:
            yield runs[at]
            at += 1


def _marked(script: str, text: str, before: str, after: str) -> str:
    core = text.strip()
    if not any(map(str.isalnum, core)) or (script == "^" and before.isdigit() and core.lower() in _ORDINALS):
        return text
    lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    joins = not tail and after.isalnum() and core[-1].isalnum() and core[-1].isdigit() == after.isdigit()
    return f"{lead}{script}{core}{tail}" if _TOKEN.fullmatch(core) and not joins else f"{lead}{script}({core}){tail}"
