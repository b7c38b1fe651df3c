"""Pictures, charts and other objects of Word: what they say in words, and what of them is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from .package import W

_V = "{urn:schemas-microsoft-com:vml}"
_O = "{urn:schemas-microsoft-com:office:office}"
_PICTURES = frozenset({"{http://schemas.openxmlformats.org/drawingml/2006/picture}pic", f"{_V}imagedata"})
_DECORATIVE = "{http://schemas.microsoft.com/office/drawing/2017/decorative}decorative"
_BOX = f"{W}txbxContent"
_KINDS = {
    "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart": "chart",
    "{http://schemas.microsoft.com/office/drawing/2014/chartex}chart": "chart",
    "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds": "diagram",
    "{http://schemas.microsoft.com/office/word/2010/wordprocessingInk}contentPart": "ink drawing",
    f"{W}contentPart": "ink drawing",
    f"{W}control": "form control",
}
_DESCRIBED = ("docPr", "cNvPr")


@dataclass(kw_only=True)
class Drawing:
    """What a drawing says besides the text boxes in it, and what is left out."""

    texts: list[str] = field(default_factory=list)
    """Alternative texts in brackets, and the words of WordArt."""
    left_out: Counter[str] = field(default_factory=Counter)


def drawing(element: Element) -> Drawing:
    """Return what a drawing says and lacks. A picture with an alternative text lacks nothing."""
    found = Drawing()
    alternatives: dict[str, None] = {}
    pictures = 0
    is_object = element.tag == f"{W}object"
    for each in _outside_boxes(element):
        local = each.tag.rpartition("}")[2]
        if each.tag in _KINDS:
            found.left_out[_KINDS[each.tag]] += 1
        elif each.tag in _PICTURES:
            pictures += 1
        elif local in _DESCRIBED:
            alternatives[(each.get("descr") or each.get("title") or "").strip()] = None
        elif each.tag == _DECORATIVE and each.get("val") in ("1", "true"):
            pictures = -1
            break
        elif each.tag == f"{_V}textpath":
            found.texts.append(each.get("string", ""))
        elif each.tag == f"{_O}OLEObject":
            is_equation = each.get("ProgID", "").startswith("Equation")
            found.left_out["equation" if is_equation else "embedded object"] += 1
        elif each.tag.startswith(_V) and each.get("alt"):
            alternatives[each.get("alt", "").strip()] = None
    alternatives.pop("", None)
    found.texts += [f"[{each}]" for each in alternatives]
    if not is_object and pictures > len(alternatives):
        found.left_out["undescribed picture"] += pictures - len(alternatives)
    return found


def _outside_boxes(element: Element) -> Iterator[Element]:
    waiting = [element]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(child for child in reversed(each) if child.tag != _BOX)
