"""Characters of the fonts Symbol and Wingdings, which have codes of their own."""

from __future__ import annotations

_PRIVATE = 0xF000
"""Word adds this to the code of a character."""
_SYMBOL_20 = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
"""From 0x20; the table of Unicode, SYMBOL.TXT."""
_SYMBOL_A0 = "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪\ufffd〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"
"""From 0xA0."""
_SYMBOL = {0x20 + at: sign for at, sign in enumerate(_SYMBOL_20)} | {
    0xA0 + at: sign for at, sign in enumerate(_SYMBOL_A0)
}
_WINGDINGS = {
    0x28: "☎", 0x2A: "✉", 0x4A: "☺", 0x4B: "😐", 0x4C: "☹", 0x6C: "●", 0x6D: "❍", 0x6E: "■", 0x6F: "□", 0x70: "□",
    0x71: "❑", 0x72: "❒", 0x74: "⧫", 0x75: "◆", 0x76: "❖", 0x9F: "•", 0xA1: "○", 0xA7: "▪", 0xA8: "◻", 0xD8: "➢",
    0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_WINGDINGS |= dict(enumerate("⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿", start=0x80))
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS}
UNKNOWN = "\ufffd"


def symbol(code: int, font: str) -> str:
    """Return the character that a code shows in a font; ``UNKNOWN`` where the font's codes are not known.

    >>> symbol(0xF061, "Symbol"), symbol(0x2713, "Segoe UI Symbol")
    ('α', '✓')
    """
    if (signs := _FONTS.get(font.lower())) is not None:
        return signs.get(code - _PRIVATE if code >= _PRIVATE else code, UNKNOWN)
    return UNKNOWN if not code or code >= 0xD800 else chr(code)


def is_private(text: str) -> bool:
    """Return whether a text has characters that only their font tells."""
    return not text.isascii() and any("\uf020" <= each <= "\uf0ff" for each in text)


def readable(text: str, font: str) -> str:
    """Return a text with the characters of a font in place of private ones."""
    return "".join(symbol(ord(each), font) if "\uf020" <= each <= "\uf0ff" else each for each in text)
