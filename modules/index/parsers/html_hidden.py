"""Which elements of an HTML page its readers do not see, and what an element's own style says."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bs4.element import Tag

_HIDDEN_WORDS = """
annotation annotation-xml area base datalist defs desc link meta metadata noembed noframes
noscript param script source style symbol template title track
"""
HIDDEN = frozenset(_HIDDEN_WORDS.split())
_BLOCKS = ("block", "flex", "grid", "table", "list-item", "flow-root")


@dataclass(frozen=True, kw_only=True)
class Style:
    """What an element's own style says of its text."""

    is_hidden: bool = False
    is_block: bool = False
    is_unmarked: bool = False
    """True for a list whose items have no marks."""
    script: Literal["", "^", "_"] = ""


def attribute(node: Tag, name: str) -> str:
    """Return an attribute as text; "" without it."""
    value = node.get(name)
    return "" if value is None else value if isinstance(value, str) else " ".join(value)


def is_hidden(node: Tag, names: Set[str] = frozenset()) -> bool:
    """Return whether a browser shows nothing of an element, given the names that style sheets hide."""
    if node.name in HIDDEN:
        return True
    attrs = node.attrs
    if not attrs:
        return node.name == "dialog"
    if "hidden" in attrs or attribute(node, "aria-hidden").lower() == "true":
        return True
    if node.name == "dialog" and "open" not in attrs:
        return True
    if names and not names.isdisjoint(
        [f"#{attribute(node, 'id')}", *(f".{each}" for each in attribute(node, "class").split())]
    ):
        return True
    style = style_of(node)
    return style is not None and style.is_hidden and not _is_formula(node)


def _is_formula(node: Tag) -> bool:
    """Return whether an element holds a formula alone: a picture of it is shown in its place, as by Wikipedia."""
    inner = [child for child in node.contents if getattr(child, "name", None) or str(child).strip()]
    return len(inner) == 1 and getattr(inner[0], "name", None) == "math"


def style_of(node: Tag) -> Style | None:
    """Return what an element's ``style`` attribute says; None without one."""
    if "style" not in node.attrs:
        return None
    text = "".join(attribute(node, "style").lower().replace("!important", "").split())
    rules = dict(rule.partition(":")[::2] for rule in text.split(";"))
    shown, aligned = rules.get("display", ""), rules.get("vertical-align", "")
    marks = {rules.get("list-style"), rules.get("list-style-type")}
    return Style(
        is_hidden=shown == "none" or rules.get("visibility") in ("hidden", "collapse"),
        is_block=shown in _BLOCKS,
        is_unmarked="none" in marks,
        script="^" if aligned == "super" else "_" if aligned == "sub" else "",
    )
