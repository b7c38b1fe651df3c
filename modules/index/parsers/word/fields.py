"""Fields of Word, such as page numbers and links: their results are text, their instructions are not."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from .package import W, number, value

_BUTTONS = ("MACROBUTTON", "GOTOBUTTON")
_MOST_WORDS = 10_000
_UNTOLD = {
    "EQ": "equation",
    "LISTNUM": "list number",
    "AUTONUM": "list number",
    "AUTONUMLGL": "list number",
    "AUTONUMOUT": "list number",
}
"""Fields that show something and store no result, with what is missing."""


@dataclass(kw_only=True)
class _Open:
    instruction: list[str] = field(default_factory=list)
    has_result: bool = False


@dataclass(kw_only=True)
class Fields:
    """The fields that are open at a place of a text."""

    _open: list[_Open] = field(default_factory=list)
    _instructions: int = 0

    @property
    def in_instruction(self) -> bool:
        """True where the text is an instruction of a field and not its result."""
        return self._instructions > 0

    def step(self, kind: str) -> tuple[str, str]:
        """Begin a field, go on to its result, or end it; return what it shows without a result, and what is missing."""
        if kind == "begin":
            self._open.append(_Open())
            self._instructions += 1
        elif not self._open:
            return "", ""
        elif kind == "separate" and not self._open[-1].has_result:
            self._open[-1].has_result = True
            self._instructions -= 1
        elif kind == "end":
            ended = self._open.pop()
            if not ended.has_result:
                self._instructions -= 1
                return without_result("".join(ended.instruction))
        return "", ""

    def instruct(self, text: str) -> None:
        """Add a text to the instruction of the innermost field."""
        if self._open and not self._open[-1].has_result:
            self._open[-1].instruction.append(text)


def without_result(instruction: str) -> tuple[str, str]:
    """Return what a field without a stored result shows, and what is missing from that; "" for nothing.

    >>> without_result(" MACROBUTTON NoMacro Click here ")
    ('Click here', '')
    >>> without_result(r"EQ \\f(1,2)")
    ('', 'equation')
    """
    words = instruction[:_MOST_WORDS].split(None, 2)
    name = words[0].upper() if words else ""
    if name in _BUTTONS and len(words) > 2:
        return words[2].strip(), ""
    return "", _UNTOLD.get(name, "")


def form_field(element: Element) -> str:
    """Return what a drop-down list or check box of an older form shows; "" for other fields."""
    data = element.find(f"{W}ffData")
    if data is None:
        return ""
    if (choices := data.find(f"{W}ddList")) is not None:
        entries = [value(each) for each in choices.findall(f"{W}listEntry")]
        chosen = number(value(choices.find(f"{W}result")) or value(choices.find(f"{W}default")))
        return entries[chosen] if 0 <= chosen < len(entries) else ""
    if (box := data.find(f"{W}checkBox")) is not None:
        checked = box.find(f"{W}checked")
        checked = box.find(f"{W}default") if checked is None else checked
        return "☐" if checked is None or value(checked) in ("0", "false") else "☒"
    return ""
