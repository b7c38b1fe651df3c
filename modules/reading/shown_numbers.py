"""Numbers and dates of a workbook as texts: what the cell shows where its format says so, dates as in ISO 8601."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext

_GENERAL = frozenset({"", "General", "GENERAL", "Standard", "@"})
_MOST_DIGITS = 15
"""Digits of a number that Excel keeps."""
_LONGEST_FORMAT = 100
_SECTION = re.compile(
    r"(?P<before>[^0#?.,]*+)(?P<whole>[0#?,]*+)(?P<rest>\.[0#?]*+)?(?P<after>[^0#?.,]*+)",
)
_LITERAL = re.compile(
    r"""\[\$([^\[\]\-]*+)[^\[\]]*+\]|"([^"]*+)"|\\(.)|_.|\*.|\[(?:[A-Z][a-z]++|Color ?[0-9]++)\]""", re.DOTALL
)
_LETTERS_SHOWN = frozenset(" $-+()%:!'~<>=€£¥\u00a0")
_HIDDEN = "\ue000"
"""Stands for what a format quotes, while its digits are found."""


def shown_value(value: object, number_format: str) -> tuple[str, str]:
    """Return the text that a spreadsheet shows for a number or date, and a doubt about it; "" without one.

    >>> shown_value(0.5, "0%"), shown_value(7, "000"), shown_value(3.0, "General")
    (('50%', ''), ('007', ''), ('3', ''))
    """
    if isinstance(value, bool):
        return str(value).upper(), ""
    if isinstance(value, int | float):
        return _shown_number(value, number_format)
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat(), "a date or time, written as in ISO 8601"
    if isinstance(value, timedelta):
        hours, seconds = divmod(round(value.total_seconds()), 3600)
        return f"{hours}:{seconds // 60:02}:{seconds % 60:02}", "a duration, written as hours, minutes, seconds"
    return str(value), ""


def _shown_number(value: int | float, number_format: str) -> tuple[str, str]:
    if not math.isfinite(value):
        return str(value), "no number that can be written"
    if number_format in _GENERAL:
        return _plain(value)
    # A format of thousands of digits would write as many for every cell.
    shown = _formatted(value, number_format) if len(number_format) <= _LONGEST_FORMAT else None
    if shown is None:
        return _plain(value)[0], f"a number in the format {number_format!r:.40}, written without it"
    is_local = "," in shown or not set(shown) <= set("0123456789.-%")
    return shown, f"a number in the format {number_format!r:.40}, whose marks differ by country" if is_local else ""


def _plain(value: int | float) -> tuple[str, str]:
    number = Decimal(str(value)) if isinstance(value, int) else Decimal(f"{value:.{_MOST_DIGITS}g}")
    if number == number.to_integral_value():
        text = str(int(number))
        return text, f"a number of more than {_MOST_DIGITS} digits" if len(text.lstrip("-")) > _MOST_DIGITS else ""
    return f"{value:.{_MOST_DIGITS}g}", ""


def _formatted(value: int | float, number_format: str) -> str | None:
    """Return a number in a format of digits, grouping, percent signs and quoted texts; None in any other."""
    quoted: list[str] = []

    def hidden(found: re.Match[str]) -> str:
        quoted.append(found[1] or found[2] or found[3] or "")
        return _HIDDEN

    sections = _LITERAL.sub(hidden, number_format).split(";")
    place = 1 if value < 0 and len(sections) > 1 else 2 if value == 0 and len(sections) > 2 else 0
    found = _SECTION.fullmatch(sections[place])
    around = f"{found['before']}{found['after']}" if found else ""
    if found is None or not set(around) <= _LETTERS_SHOWN | {_HIDDEN} or not found["whole"] + (found["rest"] or ""):
        return None
    whole, rest = found["whole"], (found["rest"] or ".")[1:]
    is_dash = value == 0 and set(found["whole"] + (found["rest"] or "")) == {"?"}  # of accounts, which is no answer
    if whole.endswith(",") or whole.startswith(",") or is_dash:
        return None
    percent = around.count("%")
    if abs(value) >= 10.0**_MOST_DIGITS:
        return None
    number = abs(Decimal(f"{value:.{_MOST_DIGITS}g}")).scaleb(2 * percent)
    digits = _digits(number, whole, rest)
    minus = "-" if value < 0 and place == 0 and set(digits) & set("123456789") else ""
    before = iter(quoted[sum(each.count(_HIDDEN) for each in sections[:place]) :])
    texts = (
        "".join(next(before) if letter == _HIDDEN else letter for letter in found[part]) for part in ("before", "after")
    )
    left, right = texts
    return f"{minus}{left}{digits}{right}".strip()


def _digits(number: Decimal, whole: str, rest: str) -> str:
    with localcontext(prec=2 * _LONGEST_FORMAT + _MOST_DIGITS):
        rounded = number.quantize(Decimal(1).scaleb(-len(rest)), rounding=ROUND_HALF_UP)
    before, _, after = f"{rounded:f}".partition(".")
    before = (before.lstrip("0") or "").rjust(whole.count("0"), "0")
    if "," in whole:
        first = len(before) % 3 or 3
        before = ",".join([before[:first], *(before[place : place + 3] for place in range(first, len(before), 3))])
    needed = len(rest.rstrip("#?"))
    after = after[:needed] + after[needed:].rstrip("0")
    return f"{before}.{after}" if after else before or "0"
