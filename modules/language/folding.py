"""The form in which texts are compared: one spelling for what looks alike, with a mark for what is raised or lowered.

Unicode's own NFKC makes 10⁶ to 106, x² to x2 and 3½ to 31⁄2. Here characters that decompose by ``<super>``, ``<sub>``
and ``<fraction>`` keep a mark, and those that only shape a letter (ligatures, radicals, widths, presentation forms)
become that letter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

_SUPPLEMENT = (
    "⺁厂⺂乛⺃乚⺄乙⺅亻⺆冂⺇𠘨⺈刀⺉刂⺊卜⺋㔾⺌小⺍小⺎兀⺏尣⺐尢⺑𡯂⺒巳⺓幺⺔彑⺕𫜹⺖忄⺗心⺘扌⺙攵⺛旡⺜日⺝月⺞歺⺟母⺠民⺡氵"
    "⺢氺⺣灬⺤爫⺥爫⺦丬⺧牛⺨犭⺩王⺪𤴔⺫目⺬示⺭礻⺮𥫗⺯糹⺰纟⺱罓⺲罒⺳㓁⺴冗⺵𦉫⺶羊⺷𦍌⺸𦍋⺹耂⺺肀⺻聿⺼肉⺽𦥑⺾艹⺿艹⻀艹⻁虎"
    "⻂衤⻃覀⻄西⻅见⻆角⻇𧢲⻈讠⻉贝⻊𧾷⻋车⻌辶⻍辶⻎辶⻏邑⻐钅⻑長⻒镸⻓长⻔门⻕𨸏⻖阝⻗雨⻘青⻙韦⻚页⻛风⻜飞⻝食⻞𩙿⻟飠⻠饣"
    "⻡𩠐⻢马⻣骨⻤鬼⻥鱼⻦鸟⻧卤⻨麦⻩黄⻪黾⻫斉⻬齐⻭歯⻮齿⻯竜⻰龙⻱龜⻲亀⻳龟"
)
"""Radicals of the supplement, each before its character: NFKC knows two of them. From Unicode's
EquivalentUnifiedIdeograph.txt."""

_OTHER = {
    **dict.fromkeys("\u2018\u2019\u201b\u02bb\u02bc\u00b4", "'"),
    **dict.fromkeys("\u2010\u2011\u2212", "-"),
    **dict.fromkeys("\u2044\u2215", "/"),
    **dict(zip(_SUPPLEMENT[::2], _SUPPLEMENT[1::2], strict=True)),
}
_INVISIBLE = (
    "\u00ad\u034f\u061c\u0640\u180e\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e01ef"
)
"""Soft hyphens, joiners of words, marks of direction, selectors of glyphs, and the stretching of Arabic letters."""
_JOINERS = "\u200b-\u200d"
_JOINED = "\u0590-\u109f\u1700-\u1cff\ua8e0-\uaaff\uabc0-\uabff\U00010a00-\U00010aff\U00011000-\U00011fff"
"""Scripts from Hebrew to Myanmar and beyond, in which a joiner tells words or letters apart."""
_AS_THEY_ARE = frozenset("\u0e33\u0eb3，：；？！（）" + "".join(map(chr, range(0x3131, 0x318F))))
"""Thai and Lao AM, and single letters of Hangul, which NFKC takes apart, and words with them; and the marks of most
Chinese sentences, which stand between words, so that most Chinese texts stay as they are."""
_SHAPES = frozenset(("<wide>", "<narrow>", "<small>", "<vertical>", "<noBreak>"))
_RANGES = (
    range(0xA0, 0x3400),
    range(0xA640, 0xAC00),
    range(0xFB00, 0x10000),
    range(0x10780, 0x107C0),
    range(0x1CCD0, 0x1CD00),
    range(0x1D400, 0x1D800),
    range(0x1E030, 0x1E070),
    range(0x1EE00, 0x1EF00),
    range(0x1F100, 0x1F270),
    range(0x1FBF0, 0x1FBFA),
)
"""Where Unicode has characters that decompose otherwise than by NFC."""

_HYPHENATED = re.compile("\u00ad[ \t]*(?:\r\n?|\n)[ \t]*")
_NEEDLESS_JOINER = re.compile(f"(?<![{_JOINED}])[{_JOINERS}]")


def folded(text: str) -> str:
    """Return a text in the form in which texts are compared; that of a folded text is itself.

    A text in ASCII comes back as it is, at no cost; any other takes about 50 µs a thousand characters.

    >>> folded("ｅﬃcient ⽔ co\u00adoperate"), folded("10⁶ m², H₂O, 3½ in., Acme™, step①")
    ('efficient 水 cooperate', '10^6 m^2, H_2O, 3 1/2 in., Acme^TM, step(1)')
    """
    if text.isascii():
        return text
    table = _table()
    if table.any.search(text):
        text = _HYPHENATED.sub("", text)
        text = table.marked.sub(_marked, text).translate(table.plain)
        text = _NEEDLESS_JOINER.sub("", text)
    return unicodedata.normalize("NFC", text)


@dataclass(frozen=True, kw_only=True)
class _Table:
    any: re.Pattern[str]
    """Finds a character that changes."""
    marked: re.Pattern[str]
    """Finds what needs a look at its neighbours."""
    plain: Mapping[int, str | None]
    """All other characters that change."""
    written: Mapping[str, str]
    """Raised, lowered and set-apart characters without their mark."""


@cache
def _table() -> _Table:
    plain: dict[str, str] = {}
    raised: dict[str, str] = {}
    lowered: dict[str, str] = {}
    apart: dict[str, str] = {}
    for letter in (chr(each) for each in _every()):
        tag = _decomposition(letter)[0]
        if tag in ("<super>", "<sub>"):
            (raised if tag == "<super>" else lowered)[letter] = _expanded(letter, marks=False)
        elif (written := _expanded(letter)) != letter:
            is_apart = len(written) > 1 and (written[0].isdigit() or written[-1].isdigit())
            (apart if is_apart else plain)[letter] = written
    digits = [{each for each, written in marked.items() if written.isdigit()} for marked in (raised, lowered)]
    marked = (
        f"(?P<over>{_class(digits[0])}+)[\u2044\u2215](?P<under>{_class(digits[1])}+)|(?P<raised>{_class(raised)}+)|"
        f"(?P<lowered>{_class(lowered)}+)|{_class(apart)}"
    )
    every = {*plain, *raised, *lowered, *apart}
    return _Table(
        any=re.compile(f"[{_class(every)[1:-1]}{_INVISIBLE}{_JOINERS}]"),
        marked=re.compile(marked),
        plain={**{ord(each): written for each, written in plain.items()}, **dict.fromkeys(_invisible())},
        written={**raised, **lowered, **apart},
    )


def _marked(found: re.Match[str]) -> str:
    """Return what is written for a run of raised or lowered characters, or for one that stands apart."""
    written = _table().written
    over, under = found["over"], found["under"]
    plain = "".join(map(written.__getitem__, (over or "") + (under or "") if over else found[0]))
    text, (start, end) = found.string, found.span()
    before, after = text[start - 1 : start], text[end : end + 1]
    if over:
        plain = f"{plain[: -len(under)]}/{plain[-len(under) :]}"
    elif found["raised"] or found["lowered"]:
        mark = "^" if found["raised"] else "_"
        # Without the space, 10⁶7 would be 10^67.
        return f"{mark}{plain} " if plain[-1].isdigit() and after.isdecimal() else mark + plain
    left = " " if plain[0].isdigit() and before.isalnum() else ""
    return f"{left}{plain} " if plain[-1].isdigit() and after.isalnum() else left + plain


def _expanded(letter: str, *, marks: bool = True) -> str:
    """Return what is written for a character: itself if nothing else is."""
    if letter in _OTHER:
        return _OTHER[letter]
    tag, parts = _decomposition(letter)
    if not tag or letter in _AS_THEY_ARE:
        composed = unicodedata.normalize("NFC", letter)
        return _numbered(letter) if composed == letter else _expanded(composed) if len(composed) == 1 else composed
    if parts[0] in " \u0640" and len(parts) > 1:  # an accent on its own, which Arabic has as letters
        return parts[1:] if 0xFB50 <= ord(letter) < 0xFF00 else letter
    written = "".join(map(_expanded, parts))
    if tag == "<circle>":
        return f"({written})"
    if tag in ("<super>", "<sub>"):
        mark = "^" if tag == "<super>" else "_"
        return mark + written if marks else written
    says = tag in _SHAPES or written == " " or any(map(str.isalnum, written))
    return written if says else letter


def _numbered(letter: str) -> str:
    """Return a circled number that Unicode does not decompose, such as ❶, in parentheses; else the character."""
    if not 0x24EA <= ord(letter) <= 0x24FF and not 0x2776 <= ord(letter) <= 0x2793:
        return letter
    return f"({unicodedata.numeric(letter):.0f})"


def _decomposition(letter: str) -> tuple[str, str]:
    """Return the tag and the characters of a decomposition; an empty tag if there is none, or NFC has it."""
    tag, _, parts = unicodedata.decomposition(letter).partition(" ")
    return (tag, "".join(chr(int(part, 16)) for part in parts.split())) if tag.startswith("<") else ("", letter)


def _every() -> Iterable[int]:
    return (each for part in (*_RANGES, map(ord, _OTHER)) for each in part)


def _invisible() -> Iterable[int]:
    return (each for part in (*_RANGES, range(0xE0000, 0xE0200)) for each in part if _IS_INVISIBLE.match(chr(each)))


_IS_INVISIBLE = re.compile(f"[{_INVISIBLE}]")


def _class(letters: Iterable[str]) -> str:
    """Return a character class of a regular expression, written as ranges."""
    numbers = sorted(map(ord, letters))
    starts = [each for at, each in enumerate(numbers) if at == 0 or numbers[at - 1] != each - 1]
    ends = [each for at, each in enumerate(numbers) if at == len(numbers) - 1 or numbers[at + 1] != each + 1]
    return f"[{''.join(f'{chr(start)}-{chr(end)}' for start, end in zip(starts, ends, strict=True))}]"
