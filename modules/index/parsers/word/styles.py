"""Styles of a Word document: which are headings, hidden, raised or numbered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from ....reading.scripts import Script
from .package import W, is_on, number, value

_SCRIPTS: dict[str, Script] = {"superscript": "^", "subscript": "_", "baseline": ""}
_RAISED_HALF_POINTS = 2
"""Least height that makes a script: LibreOffice saves scripts of web pages as smaller text that is moved so far."""
_BODY_LEVEL = 9
_LONGEST_CHAIN = 30


@dataclass(frozen=True, kw_only=True)
class TextLook:
    """How text looks; None where it looks as the text around it."""

    hidden: bool | None = None
    script: Script | None = None
    font: str | None = None
    struck: bool | None = None
    """True for text that is struck out and still seen."""

    def over(self, other: TextLook) -> TextLook:
        """Return this look on top of another one."""
        return TextLook(
            hidden=other.hidden if self.hidden is None else self.hidden,
            script=other.script if self.script is None else self.script,
            font=other.font if self.font is None else self.font,
            struck=other.struck if self.struck is None else self.struck,
        )


PLAIN = TextLook()


def look_of(properties: Element | None) -> TextLook:
    """Return how the properties of a run make it look."""
    if properties is None:
        return PLAIN
    hidden: bool | None = None
    script: Script | None = None
    font: str | None = None
    struck: bool | None = None
    for each in properties:
        match each.tag.removeprefix(W):
            case "vanish":
                hidden = is_on(each)
            case "strike" | "dstrike":
                struck = is_on(each) or struck
            case "vertAlign":
                script = _SCRIPTS.get(value(each), "")
            case "position" if abs(height := number(value(each))) >= _RAISED_HALF_POINTS:
                script = "^" if height > 0 else "_"
            case "rFonts":
                font = value(each, "ascii") or value(each, "hAnsi") or None
    if hidden is None and script is None and font is None and struck is None:
        return PLAIN
    return TextLook(hidden=hidden, script=script, font=font, struck=struck)


@dataclass(frozen=True, kw_only=True)
class Style:
    """A style, with what it takes from those it is based on."""

    is_heading: bool = False
    look: TextLook = PLAIN
    numbered: tuple[str, str] = ("", "")
    """Id and level of its list; "" for none."""


class Styles:
    """The styles of a document by id."""

    def __init__(self, root: Element | None) -> None:
        found = [] if root is None else root.findall(f"{W}style")
        self._elements = {value(each, "styleId"): each for each in found}
        usual = [
            each for each in found if value(each, "type") == "paragraph" and value(each, "default") in ("1", "true")
        ]
        self._usual = value(usual[0], "styleId") if usual else ""
        self._known: dict[str, Style] = {}

    def of_paragraph(self, name: str) -> Style:
        """Return a paragraph's style, given its id; "" for the default one."""
        return self.of(name or self._usual)

    def of(self, name: str) -> Style:
        """Return a style by id; an unknown one is plain."""
        if name not in self._known:
            self._known[name] = self._resolved(name)
        return self._known[name]

    def _resolved(self, name: str) -> Style:
        chain: list[Element] = []
        while name in self._elements and len(chain) < _LONGEST_CHAIN:
            chain.append(self._elements[name])
            name = value(chain[-1].find(f"{W}basedOn"))
        style = Style()
        for element in reversed(chain):
            style = _on_top(element, style)
        return style


def _on_top(element: Element, base: Style) -> Style:
    name = value(element.find(f"{W}name")).lower()
    level = value(element.find(f"{W}pPr/{W}outlineLvl"))
    is_heading = name.startswith(("title", "heading")) or (
        number(level, _BODY_LEVEL) < _BODY_LEVEL if level else base.is_heading
    )
    listed = element.find(f"{W}pPr/{W}numPr")
    numbered = base.numbered
    if listed is not None:
        own = value(listed.find(f"{W}numId")), value(listed.find(f"{W}ilvl"))
        numbered = own[0] or numbered[0], own[1] or numbered[1]
    return replace(
        base, is_heading=is_heading, look=look_of(element.find(f"{W}rPr")).over(base.look), numbered=numbered
    )
