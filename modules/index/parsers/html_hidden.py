"""Which elements of an HTML page its readers do not see."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bs4.element import Tag

    from .html_styles import HtmlStyle

_HIDDEN_WORDS = """
annotation annotation-xml area base datalist defs desc link meta metadata noembed noframes
noscript param script source style symbol template title track
"""
HIDDEN = frozenset(_HIDDEN_WORDS.split())
_BLOCKS_WORDS = """
address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption
figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav object ol optgroup
option p pre search section select summary ul
"""
BLOCKS = frozenset(_BLOCKS_WORDS.split())
_OPENED_WORDS = """
alert alertdialog dialog listbox menu tabpanel tooltip accordion collapse drawer dropdown modal offcanvas overlay
popover popup sidebar
"""
_OPENED = frozenset(_OPENED_WORDS.split())
"""Roles and parts of classes of what scripts open."""
_ICONS = re.compile(r"(?:^|[\s_-])(?:icons?|fa|fas|far|fab|fa-\S+|glyphicon\S*|ligature|symbols?)(?=[\s_-]|$)")
_MOST_AROUND = 3
_CLASS_PARTS = re.compile(r"[\s_-]+")


def attribute(node: Tag, name: str) -> str:
    """Return an attribute as text; "" without it."""
    value = node.get(name)
    return "" if value is None else value if isinstance(value, str) else " ".join(value)


def is_hidden(node: Tag, style: HtmlStyle) -> bool:
    """Return whether a browser shows nothing of an element of this style."""
    if node.name in HIDDEN:
        return node.name != "template" or "shadowrootmode" not in node.attrs
    if style.is_hidden:
        return not _is_formula(node)
    return not style.is_displayed and ("hidden" in node.attrs or (node.name == "dialog" and "open" not in node.attrs))


Speech = Literal["read", "decoration", "unsure"]


def hidden_from_speech(node: Tag) -> Speech:
    """Return what an element is that its page hides from those who hear it, and shows to others.

    It is read unless it has no words, is a sign of a font of signs, or says what a formula beside it says. Whether it
    is shown is unsure where it is a container that scripts open and close, such as a menu.
    """
    if node.name in ("img", "image"):
        is_read = bool(attribute(node, "alt")) and not _is_beside_formula(node)
        return "read" if is_read else "decoration"
    names = f"{attribute(node, 'class')} {attribute(node, 'role')}".lower()
    if not any(map(str.isalnum, node.get_text())) or _ICONS.search(names) or _is_beside_formula(node):
        return "decoration"
    if not _OPENED.isdisjoint(_CLASS_PARTS.split(names)) or "tabindex" in node.attrs:
        return "unsure"
    has_blocks = node.find(["table", *BLOCKS]) is not None
    return "unsure" if has_blocks or node.name in _CONTAINERS else "read"


_CONTAINERS = frozenset({"nav", "aside", "section", "form", "ul", "ol", "menu", "header", "footer", "dialog", "select"})


def _is_beside_formula(node: Tag) -> bool:
    """Return whether a formula stands beside an element or beside what is around it in a line, as KaTeX writes each
    formula twice."""
    around: Tag | None = node
    for _ in range(_MOST_AROUND):
        if around is None:
            return False
        for beside in (around.find_previous_sibling(True), around.find_next_sibling(True)):
            if beside is not None and (beside.name == "math" or beside.find("math") is not None):
                return True
        around = around.parent
        if around is None or around.name in BLOCKS:
            return False
    return False


def _is_formula(node: Tag) -> bool:
    """Return whether an element holds a formula alone: Wikipedia and others show its picture instead."""
    inner = [child for child in node.contents if getattr(child, "name", None) or str(child).strip()]
    return len(inner) == 1 and getattr(inner[0], "name", None) == "math"
