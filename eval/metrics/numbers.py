"""Whether an answer gives the number of a gold answer, whatever sign, separators and unit look like.

Exact match drops signs, separators and decimal points: it takes -3.5 for 35, as the official scripts do.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

TOLERANCE = 1e-6
"""Greatest difference of two numbers that match, as a share of the greater one."""
_COMMA_LANGS = frozenset(
    {"bg", "ca", "cs", "da", "de", "el", "es", "et", "fi", "fr", "hr", "hu", "id", "it", "lt", "lv", "nb", "nl", "no"}
    | {"pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "tr", "uk", "vi"}
)
"""Languages that write 1.234,5 for 1,234.5."""
_SPELLINGS = {
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"), "-"),
    **{ord("٫"): ".", ord("٬"): ",", ord("﹪"): "%", ord("℃"): "°C", ord("℉"): "°F"},
    **{ord(each): f"{number}" for number, each in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{ord("⁻"): "-", ord("⁺"): "+"},
}
_RAISED = re.compile(r"[⁻⁺]?[⁰¹²³⁴-⁹]+")
_GAP = r"[ \u00a0\u202f\u2009'’]"
_NO_BLANKS = r"\u2e80-\u9fff\uac00-\ud7af"
"""Letters of scripts that put no blank before a number."""
_CURRENCIES = "$€£¥₹₽₩"
_CODES = "USD|EUR|GBP|CHF|CNY|RMB|JPY|INR|RUB|KRW"
_NUMBER = re.compile(
    rf"(?<![^\W{_NO_BLANKS}])(?<![.,^])(?P<sign>[-+]{_GAP}?|(?:minus|negative|moins) |[负負])?"
    rf"(?P<before>[{_CURRENCIES}]|(?:{_CODES}){_GAP}?)?"
    rf"(?P<digits>\d{{1,3}}(?:(?:,\d{{3}})+|(?:\.\d{{3}})+|(?:{_GAP}\d{{3}})+)(?!\d)(?:[.,]\d{{1,30}})?"
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)(?:\.\d{1,30})?|\d{1,30}(?:[.,]\d{1,30})?|[.,]\d{1,30})"
    r"(?:[eE](?P<exponent>[-+]?\d{1,3})| ?[×*] ?10\^(?P<power>[-+]?\d{1,3}))?(?![.,]?\d|\^)"
)
_SCALES: Mapping[str, float] = {
    **{"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "millions": 1e6, "billions": 1e9},
    **{"千": 1e3, "万": 1e4, "萬": 1e4, "百万": 1e6, "亿": 1e8, "億": 1e8},
}
_SCALE = re.compile(rf" ?(?P<scale>{'|'.join(sorted(_SCALES, key=len, reverse=True))})(?![a-z])")
_PERCENT = "percent|per cent|Prozent|procent|pour cent|por ciento"
_SYMBOLS = frozenset(
    {"V", "A", "W", "J", "N", "K", "Pa", "Hz", "MPa", "GPa", "MW", "GW", "MV", "MHz", "GHz", "GB", "MB", "TB", "KB"}
    | {"Nm", "Wh", "Ω", "L", "M", "T", "Bq", "Gy", "Sv", *_CODES.split("|")}
)
"""Units that begin with a capital letter; other words that do are names."""
_UNIT = re.compile(
    rf"\s?(?P<unit>%|‰|°\s?[CFK](?![^\W\d_])|°|[{_CURRENCIES}]|(?:{_PERCENT})(?![^\W\d_])|[{_NO_BLANKS}]{{1,3}}"
    r"|[^\W\d_]{1,20}[²³23]?(?:[/·][^\W\d_]{1,20}[²³23]?)?)"
)
_KNOWN_UNITS = re.compile(
    rf"%|‰|°.?|[{_CURRENCIES}]|(?:{'|'.join(sorted(_SYMBOLS))})|[kcmµn]?(?:m|g|s|l)|bar|rpm|h|min"
)
"""Units that no other word is: a number with another one than the gold answer's is of another quantity."""
_RANGE = re.compile(r"\s?(?:-|to|bis|至|到|～|~)\s?")
_MOST_READ = 20_000


@dataclass(frozen=True)
class _Number:
    value: float
    unit: str
    """``""`` without one; in an answer it may be the next word."""
    start: int
    """Where it stands in its text, the unit included."""
    end: int


def number_match(prediction: str, golds: Iterable[str], *, lang: str = "en") -> float | None:
    """Return 1.0 if an answer gives the number of some gold answer and no other one, else 0.0.

    A gold answer is a number if it is digits, perhaps with a sign, a currency, "million" and one unit: "12 Angry Men"
    and "5 June" are none. Of the numbers of the answer those with the unit of the gold answer count; without any, those
    that have no other known unit. Numbers match within ``TOLERANCE``. At most 20,000 characters are read.

    Args:
        prediction: The answer, ``""`` for none.
        golds: The gold answers.
        lang: ISO 639-1 code; says whether 1.234 is a decimal number or has a separator of thousands.

    Returns:
        None where no gold answer is a number.

    >>> number_match("It is −3.5 °C.", ["-3.5 °C"]), number_match("35", ["-3.5"]), number_match("Bern", ["Bern"])
    (1.0, 0.0, None)
    >>> number_match("12,000 rpm at 20 bar", ["12000 rpm"]), number_match("either 3 or 4", ["3"])
    (1.0, 0.0)
    """
    wanted = [number for gold in golds if (number := _only_number(gold, lang)) is not None]
    if not wanted:
        return None
    found = _numbers_in(_plain(prediction[:_MOST_READ]), lang)
    return max(float(_gives(found, each)) for each in wanted)


def _gives(found: list[_Number], wanted: _Number) -> bool:
    counted = found
    if wanted.unit:
        counted = [number for number in found if number.unit == wanted.unit]
        counted = counted or [number for number in found if not _KNOWN_UNITS.fullmatch(number.unit)]
    return bool(counted) and all(math.isclose(each.value, wanted.value, rel_tol=TOLERANCE) for each in counted)


def _only_number(gold: str, lang: str) -> _Number | None:
    """Return the number that a gold answer is, perhaps with a unit; None if it is another text."""
    text = _plain(gold[:_MOST_READ]).strip().rstrip(". ")
    numbers = _numbers_in(text, lang)
    if len(numbers) != 1 or (numbers[0].start, numbers[0].end) != (0, len(text)):
        return None
    unit = numbers[0].unit
    return numbers[0] if not unit[:1].isupper() or unit in _SYMBOLS else None


def _numbers_in(text: str, lang: str) -> list[_Number]:
    numbers: list[_Number] = []
    for found in _NUMBER.finditer(text):
        scale = _SCALE.match(text, found.end())
        end = scale.end() if scale else found.end()
        unit = _UNIT.match(text, end)
        name = "".join(unit["unit"].split()) if unit else ""
        name = "%" if re.fullmatch(_PERCENT.replace(" ", ""), name) else name
        number = _Number(
            value=_value(found, lang) * (_SCALES[scale["scale"]] if scale else 1.0),
            unit=(found["before"] or "").strip() or name,
            start=found.start(),
            end=unit.end() if unit and not found["before"] else end,
        )
        if numbers and not numbers[-1].unit and _RANGE.fullmatch(text, numbers[-1].end, found.start("digits")):
            numbers[-1] = replace(numbers[-1], unit=number.unit)
            number = replace(number, value=abs(number.value))
        numbers.append(number)
    return numbers


def _value(found: re.Match[str], lang: str) -> float:
    digits = re.sub(_GAP, "", found["digits"])
    decimal = "," if lang.casefold().partition("-")[0] in _COMMA_LANGS else "."
    marks = [each for each in digits if each in ".,"]
    last = digits.rpartition(marks[-1])[2] if marks else ""
    if len(set(marks)) == 2:
        decimal = marks[-1]
    elif len(marks) > 1 or (marks and len(last) == 3 and marks[0] != decimal and digits[0] not in "0.,"):
        decimal = ""  # all are separators of thousands
    elif marks:
        decimal = marks[0]
    whole = "".join("." if each == decimal else each for each in digits if each not in ".," or each == decimal)
    sign = -1.0 if (found["sign"] or "+")[0] in "-mn负負" else 1.0
    return sign * float(f"{whole}e{found['exponent'] or found['power'] or 0}")


def _plain(text: str) -> str:
    """Return a text with the usual minus sign, digits and marks of usual width, and powers as ``^6``."""
    text = _RAISED.sub(lambda raised: f"^{raised[0]}", text).translate(_SPELLINGS)
    wide = (chr(ord(each) - 0xFEE0) if "\uff01" <= each <= "\uff5e" else each for each in text)
    return unicodedata.normalize("NFC", "".join(wide)).translate(_SPELLINGS)
