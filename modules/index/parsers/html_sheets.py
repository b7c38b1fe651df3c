"""Style sheets inside of an HTML page, as rules of the few properties that say how a text is seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from .html_styles import PROPERTIES

_PARTS = re.compile(
    r"""/\*.*?(?:\*/|\Z) | "(?:[^"\\\n]|\\.)*+(?:"|\n|\Z) | '(?:[^'\\\n]|\\.)*+(?:'|\n|\Z)"""
    r"""| url\([^)"']*+ | \\. | [{};]""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
"""Comments, strings and addresses, whose signs part nothing; and the signs that part rules and declarations."""
_IMPORTANT = re.compile(r"!\s*+important\s*+\Z", re.IGNORECASE)
_UNSEEN_MEDIA = frozenset({"print", "speech", "aural", "braille", "embossed", "handheld", "projection", "tty", "tv"})
_UNSURE_BLOCKS = frozenset({"@supports", "@container", "@scope", "@document", "@-moz-document"})
_MOST_DEEP = 30
_MOST_SELECTORS = 4_000
"""Most characters of the selectors of a rule; a longer rule is not read."""
_MOST_PAIRS = 100
_UNREAD = "&"
"""Stands for selectors that are too long."""
_MOST_VALUE = 200
_ORDER = ("no", "unsure", "yes")

Applies = Literal["yes", "no", "unsure"]


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A property with its value."""

    name: str
    value: str
    is_important: bool = False


@dataclass(frozen=True, kw_only=True)
class SheetRule:
    """Selectors, and what they say of the elements that they choose."""

    selectors: str
    declarations: tuple[Declaration, ...]
    is_sure: bool = True
    """False for a rule of some screens only, such as narrow ones."""
    layer: str = ""
    """The cascade layer that the rule is part of; "" for none."""


@dataclass(kw_only=True)
class _Block:
    """An open pair of braces."""

    selectors: str = ""
    """Of the rule it is, or is part of; "" around rules."""
    applies: Applies = "yes"
    layer: str = ""
    declared: list[Declaration] = field(default_factory=list)


def sheet_rules(sheet: str, media: str = "") -> Iterator[SheetRule]:
    """Yield the rules of a sheet that declare any of ``PROPERTIES``, in order; ``media``: as of the ``style`` element.

    Rules for print or speech are left out. A rule without selectors only names a layer, before what is in it.

    >>> [rule.selectors for rule in sheet_rules(".a, #b {display: none} @media print {.d {display: none}}")]
    ['.a, #b']
    """
    blocks = [_Block(applies=media_apply(media))]
    stray = ""
    for text, sign in _signs(sheet.replace("<!--", "    ").replace("-->", "   ")):
        block = blocks[-1]
        if sign == "{":
            yield from _rule_of(block)
            blocks.append(_block(stray + text.strip(), block) if len(blocks) < _MOST_DEEP else _Block(applies="no"))
            stray = ""
            continue
        if block.selectors and (found := _declaration(text)):
            block.declared.append(found)
        elif sign == ";" and text.lstrip()[:6].lower() == "@layer":
            for name in text.strip()[6:].split(","):
                yield SheetRule(selectors="", declarations=(), layer=_layer(name, block.layer))
        if sign == "}" and len(blocks) > 1:
            yield from _rule_of(blocks.pop())
        elif sign == "}":
            stray = sign  # part of the next selectors, which browsers do not understand then
    while blocks:  # those that the sheet lacks the ends of
        yield from _rule_of(blocks.pop())


def declarations_of(text: str) -> tuple[Declaration, ...]:
    """Return the declarations of a ``style`` attribute that are any of ``PROPERTIES``, in order.

    >>> declarations_of("color: red; DISPLAY: none !important")
    (Declaration(name='display', value='none', is_important=True),)
    """
    found = (_declaration(part) for part, sign in _signs(text) if sign in (";", ""))
    return tuple(each for each in found if each)


def media_apply(queries: str) -> Applies:
    """Return whether what is meant for some media is seen on screens; unsure if it depends on the screen.

    >>> media_apply("print"), media_apply("screen, print"), media_apply("(max-width: 600px)")
    ('no', 'yes', 'unsure')
    """
    found = {_applies(query.strip()) for query in queries.lower().split(",")}
    return "yes" if "yes" in found else "unsure" if "unsure" in found else "no"


def _applies(query: str) -> Applies:
    words = query.split(None, 2)
    is_not = words[:1] == ["not"]
    medium, *features = words[1:] if words[:1] in (["not"], ["only"]) else words or ["all"]
    if medium in _UNSEEN_MEDIA:
        return "no" if not is_not else "unsure" if features else "yes"
    if medium not in ("all", "screen") or features:
        return "unsure"
    return "no" if is_not else "yes"


def _signs(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a sheet without its comments, each with the sign behind it; "" at the end."""
    kept: list[str] = []
    start = 0
    for part in _PARTS.finditer(sheet):
        is_comment = part[0].startswith("/*")
        if is_comment or part[0] in "{};":
            kept.append(sheet[start : part.start()])
            start = part.end()
            if not is_comment:
                yield " ".join(kept), part[0]
                kept.clear()
    yield " ".join([*kept, sheet[start:]]), ""


def _rule_of(block: _Block) -> Iterator[SheetRule]:
    """Yield what a block declares so far, if that is anything."""
    if block.declared and block.applies != "no":
        yield SheetRule(
            selectors=block.selectors,
            declarations=tuple(block.declared),
            is_sure=block.applies == "yes",
            layer=block.layer,
        )
    block.declared.clear()


def _block(begun: str, around: _Block) -> _Block:
    """Return the block that a text before a brace begins."""
    name, *rest = begun.split(None, 1) or [""]
    name = name.partition("(")[0].lower()
    if not name.startswith("@"):
        return _Block(selectors=_within(begun, around.selectors), applies=around.applies, layer=around.layer)
    if name == "@layer":
        layer = _layer("".join(rest), around.layer)
        return _Block(selectors=around.selectors, applies=around.applies, layer=layer)
    applies: Applies = "unsure" if name in _UNSURE_BLOCKS else "no"
    if name == "@media":
        applies = media_apply(begun[len("@media") :])
    least = min(applies, around.applies, key=_ORDER.index)
    return _Block(selectors=around.selectors, applies=least, layer=around.layer)


def _within(selectors: str, around: str) -> str:
    """Return the selectors of a rule inside of another one with these selectors."""
    if not around or not selectors or len(selectors) + len(around) > _MOST_SELECTORS:
        return selectors if not around else _UNREAD
    pairs = [(inner.strip(), outer.strip()) for inner in selectors.split(",") for outer in around.split(",")]
    found = (inner.replace("&", outer, 3) if "&" in inner else f"{outer} {inner}" for inner, outer in pairs)
    joined = ", ".join(found) if len(pairs) < _MOST_PAIRS else _UNREAD
    return joined if len(joined) < _MOST_SELECTORS else _UNREAD


def _layer(name: str, around: str) -> str:
    return f"{around}.{name.strip() or 'unnamed'}"


def _declaration(text: str) -> Declaration | None:
    """Return a declaration of any of ``PROPERTIES``; None for others."""
    name, colon, value = text.partition(":")
    name = name.strip().lower()
    if not colon or name not in PROPERTIES or len(value) > _MOST_VALUE:
        return None
    plain = " ".join(value.lower().split())
    kept = _IMPORTANT.sub("", plain)
    return Declaration(name=name, value=kept.strip(), is_important=kept != plain)
