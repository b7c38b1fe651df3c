"""What declarations of CSS say of a text: whether it is shown, a block, raised, lowered or struck out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...reading.scripts import Script

PROPERTIES = frozenset(
    {"display", "visibility", "text-decoration", "text-decoration-line", "list-style", "list-style-type"}
    | {"vertical-align", "baseline-shift", "font-variant-position", "font-size"}
    | {"position", "top", "bottom", "width", "min-width"}
    | {f"{space}{side}" for space in ("margin", "padding") for side in ("", "-left", "-right")}
)
"""Properties that say how a text is seen."""
_BLOCKS = ("block", "flex", "grid", "table", "list-item", "flow-root")
ListKind = Literal["", "none", "1", "a", "A", "i", "I"]
"""What a style says of the numbers of a list: that there are none, or their type as of HTML; "" for nothing."""
_LIST_KINDS: Mapping[str, ListKind] = {
    **dict.fromkeys(("none", "disc", "circle", "square"), "none"),
    **{"decimal": "1", "lower-alpha": "a", "lower-latin": "a", "upper-alpha": "A", "upper-latin": "A"},
    **{"lower-roman": "i", "upper-roman": "I"},
}
_LENGTH = re.compile(r"([-+]?[0-9]{0,6}(?:\.[0-9]{1,6})?)(em|rem|ex|px|pt|mm|cm|%)")
_EMS: Mapping[str, float] = {
    **{"em": 1, "rem": 1, "ex": 0.5, "px": 1 / 16, "pt": 1 / 12, "mm": 0.24, "cm": 2.4},
    "%": 0.012,  # of the height of a line
}
"""Units of lengths, in heights of the letters of a common text."""
_SMALLER = frozenset({"smaller", "small", "x-small", "xx-small"})
_LEAST_SPACE = 0.5
"""Room beside a text from which on it stands apart, in heights of letters; groups of three digits have less."""
_LEAST_RISE, _MOST_RISE = 0.12, 1.5
"""A raised or lowered text stands at least and at most so far from its line, in heights of letters."""


@dataclass(frozen=True, kw_only=True)
class HtmlStyle:
    """What the style of an element says of its text."""

    is_hidden: bool = False
    """True for what is not shown, or shown in such parts alone as ``shown_within`` names."""
    is_displayed: bool = False
    """True for what a style shows, also in place of an attribute that hides it."""
    is_block: bool = False
    is_set_apart: bool = False
    """True for a part of a line that stands apart from the others, such as a cell."""
    sets_parts_apart: bool = False
    """True for a box whose parts stand apart from each other."""
    list_kind: ListKind = ""
    is_struck: bool | None = None
    """True for a text that is struck out, False for one that a style has without lines; None if nothing is said."""
    script: Script = ""


def style_of_values(values: Mapping[str, str]) -> HtmlStyle:
    """Return what the values of properties say, in small letters.

    >>> style_of_values({"vertical-align": "4px", "text-decoration-line": "line-through"}).script
    '^'
    """
    shown = values.get("display", "")
    struck = values.get("text-decoration-line")
    script = _script(values)
    return HtmlStyle(
        is_hidden=shown == "none",
        is_displayed=shown not in ("", "none"),
        is_block=shown in _BLOCKS,
        is_set_apart=not script and (shown == "table-cell" or _has_space(values) or _has_width(shown, values)),
        sets_parts_apart=shown.removeprefix("inline-") in ("flex", "grid"),
        list_kind=_list_kind(values.get("list-style-type") or values.get("list-style", "")),
        is_struck=None if struck is None else "line-through" in struck.split(),
        script=script,
    )


def ems_of(length: str) -> float:
    """Return a length in heights of letters, such as "1.2em", "6px" or "6"; 0 for anything else."""
    return _ems(f"{length}px" if length[-1:].isdigit() else length.lower())


def is_of_script(rise: float) -> bool:
    """Return whether a text so many heights of letters above or below its line is raised or lowered."""
    return _LEAST_RISE <= abs(rise) <= _MOST_RISE


def _has_width(shown: str, values: Mapping[str, str]) -> bool:
    return shown == "inline-block" and any(_ems(values.get(name, "")) > 0 for name in ("width", "min-width"))


def _has_space(values: Mapping[str, str]) -> bool:
    """Return whether there is room at the left or the right of a text, or within its box."""
    lengths = [values.get(f"{space}-{side}", "") for space in ("margin", "padding") for side in ("left", "right")]
    for space in ("margin", "padding"):
        around = values.get(space, "").split()  # above, right, below, left: what is left out equals what is opposite
        lengths += around[:1] if len(around) == 1 else around[1::2]
    return any(_ems(length) >= _LEAST_SPACE for length in lengths)


def _list_kind(style: str) -> ListKind:
    return next((_LIST_KINDS[word] for word in style.split() if word in _LIST_KINDS), "")


def _script(rules: Mapping[str, str]) -> Script:
    aligned = rules.get("vertical-align") or rules.get("baseline-shift", "")
    for name in (aligned, rules.get("font-variant-position")):
        if name in ("super", "sub"):
            return "^" if name == "super" else "_"
    if aligned in ("top", "text-top") and _is_smaller(rules.get("font-size", "")):
        return "^"
    rise = _ems(aligned)
    if rules.get("position") == "relative":
        rise += _ems(rules["bottom"]) if "bottom" in rules else -_ems(rules.get("top", ""))
    return "" if not is_of_script(rise) else "^" if rise > 0 else "_"


def _is_smaller(size: str) -> bool:
    found = _LENGTH.fullmatch(size)
    return size in _SMALLER or bool(found and found[1] and float(found[1]) < {"em": 1, "%": 100}.get(found[2], 0))


def _ems(length: str) -> float:
    """Return a length in heights of letters; 0 for anything else."""
    found = _LENGTH.fullmatch(length)
    return float(found[1]) * _EMS[found[2]] if found and found[1] not in ("", "-", "+") else 0.0
