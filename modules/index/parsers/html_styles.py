"""What declarations of CSS say of a text: whether it is shown, a block, raised, lowered or struck out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...reading.scripts import Script

_BLOCKS = ("block", "flex", "grid", "table", "list-item", "flow-root")
_LENGTH = re.compile(r"([-+]?[0-9]{0,6}(?:\.[0-9]{1,6})?)(em|rem|ex|px|pt|mm|cm|%)")
_EMS: Mapping[str, float] = {
    **{"em": 1, "rem": 1, "ex": 0.5, "px": 1 / 16, "pt": 1 / 12, "mm": 0.24, "cm": 2.4},
    "%": 0.012,  # of the height of a line
}
"""Units of lengths, in heights of the letters of a common text."""
_SMALLER = frozenset({"smaller", "small", "x-small", "xx-small"})
_LEAST_RISE, _MOST_RISE = 0.12, 1.5
"""A raised or lowered text stands at least and at most so far from its line, in heights of letters."""


@dataclass(frozen=True, kw_only=True)
class HtmlStyle:
    """What declarations say of the text of an element."""

    is_hidden: bool = False
    is_block: bool = False
    is_unmarked: bool = False
    """True for a list whose items have no marks."""
    is_struck: bool = False
    """True for a text that is struck out."""
    script: Script = ""


def declared_style(declarations: str) -> HtmlStyle:
    """Return what declarations say, such as those of a ``style`` attribute.

    >>> declared_style("vertical-align: 4px; text-decoration: line-through")
    HtmlStyle(is_hidden=False, is_block=False, is_unmarked=False, is_struck=True, script='^')
    """
    text = "".join(declarations.lower().replace("!important", "").split())
    rules = dict(rule.partition(":")[::2] for rule in text.split(";"))
    shown = rules.get("display", "")
    return HtmlStyle(
        is_hidden=shown == "none" or rules.get("visibility") in ("hidden", "collapse"),
        is_block=shown in _BLOCKS,
        is_unmarked="none" in (rules.get("list-style"), rules.get("list-style-type")),
        is_struck=any("line-through" in rules.get(name, "") for name in ("text-decoration", "text-decoration-line")),
        script=_script(rules),
    )


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
    return "" if not _LEAST_RISE <= abs(rise) <= _MOST_RISE else "^" if rise > 0 else "_"


def _is_smaller(size: str) -> bool:
    found = _LENGTH.fullmatch(size)
    return size in _SMALLER or bool(found and found[1] and float(found[1]) < {"em": 1, "%": 100}.get(found[2], 0))


def _ems(length: str) -> float:
    """Return a length in heights of letters; 0 for anything else."""
    found = _LENGTH.fullmatch(length)
    return float(found[1]) * _EMS[found[2]] if found and found[1] not in ("", "-", "+") else 0.0
