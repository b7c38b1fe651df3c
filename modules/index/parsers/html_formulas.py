"""Formulas of HTML pages, which are written in MathML, as lines such as ``E=mc^2``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...reading.scripts import APART
from .html_styles import ems_of

if TYPE_CHECKING:
    from bs4.element import PageElement, Tag

    FormulaSteps = list[PageElement | str]
    """Elements to read, and texts to write."""

_NO_LINE = re.compile(r"0+(?:\.0+)?(?:[a-z]{2}|%)?")
_LEAST_SPACE = 0.15
"""Width from which on a space is one, in heights of letters."""
RAISED, LOWERED, LEVEL = "\x01\x02\x03"
"""Marks of text before it is cut into lines: what follows is raised or lowered, or no more."""


def _scripted_steps(node: Tag) -> FormulaSteps:
    """Return the steps of msup, msub, msubsup and their like, whose second and third child are scripts."""
    base, *scripts = _filled(node, 3)
    marks = (RAISED,) if node.name in ("msup", "mover") else (LOWERED, RAISED)
    steps: FormulaSteps = [base]
    for mark, script in zip(marks, scripts, strict=False):
        steps += [mark, script, LEVEL]
    return steps


def _many_scripted_steps(node: Tag) -> FormulaSteps:
    """Return the steps of mmultiscripts: its base, pairs of a lowered and a raised script, and such pairs before."""
    parts: list[Tag | str] = [*elements_of(node)] or [""]
    base, *scripts = parts
    names = [getattr(script, "name", "") for script in scripts]
    middle = names.index("mprescripts") if "mprescripts" in names else len(scripts)
    return [APART, *_script_pairs(scripts[middle + 1 :], is_before=True), base, *_script_pairs(scripts[:middle])]


def _fraction_steps(node: Tag) -> FormulaSteps:
    above, below = _filled(node, 2)
    if _NO_LINE.fullmatch(str(node.get("linethickness", ""))):
        return [above, "; ", below]
    return [APART, *_in_parentheses(above), "/", *_in_parentheses(below), APART]


def _matrix_steps(node: Tag) -> FormulaSteps:
    """Return the steps of mtable or mtr, with a mark between its rows or cells."""
    steps: FormulaSteps = []
    for each in elements_of(node):
        steps += ["; " if node.name == "mtable" else ", ", each]
    return steps[1:]


def _root_steps(node: Tag) -> FormulaSteps:
    inner = elements_of(node)
    if node.name == "mroot" and len(inner) > 1:
        return [APART, RAISED, inner[1], LEVEL, "√(", inner[0], ")"]
    return ["√(", *inner, ")"]


def _space_steps(node: Tag) -> FormulaSteps:
    return [" "] if ems_of(str(node.get("width", ""))) >= _LEAST_SPACE else []


def _text_steps(node: Tag) -> FormulaSteps:
    """Return the steps of mtext, whose blanks count."""
    texts = [each if isinstance(each, str) else "" for each in node.contents] or [""]
    return [" " * texts[0][:1].isspace(), *node.contents, " " * texts[-1][-1:].isspace()]


def elements_of(node: Tag) -> list[Tag]:
    """Return the elements directly in one, without its texts."""
    return [child for child in node.contents if getattr(child, "name", None)]  # type: ignore[misc]


def _script_pairs(scripts: Sequence[Tag | str], *, is_before: bool = False) -> FormulaSteps:
    """Return the steps of pairs of a lowered and a raised script, the raised one first before a base."""
    steps: FormulaSteps = []
    for at in range(0, len(scripts), 2):
        pair = [*zip((LOWERED, RAISED), scripts[at : at + 2], strict=False)]
        for mark, script in reversed(pair) if is_before else pair:
            steps += [mark, script, LEVEL]
    return steps


def _filled(node: Tag, count: int) -> list[Tag | str]:
    """Return the first elements of a node, "" for those it lacks."""
    found: list[Tag | str] = list(elements_of(node))
    return (found + [""] * count)[:count]


def _in_parentheses(part: Tag | str) -> FormulaSteps:
    is_one = isinstance(part, str) or (part.name in ("mi", "mn") and len(part.contents) == 1)
    return [part] if is_one else ["(", part, ")"]


FORMULA_STEPS: Mapping[str, Callable[[Tag], FormulaSteps]] = {
    **dict.fromkeys(("msup", "msub", "msubsup", "munder", "mover", "munderover"), _scripted_steps),
    "mmultiscripts": _many_scripted_steps,
    "mfrac": _fraction_steps,
    "mspace": _space_steps,
    "mtext": _text_steps,
    "mphantom": lambda _: [],
    **dict.fromkeys(("mtable", "mtr"), _matrix_steps),
    **dict.fromkeys(("msqrt", "mroot"), _root_steps),
}
"""How elements of MathML are read whose content does not simply follow the text before it."""
