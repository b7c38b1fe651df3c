"""Equations of Word as one line of text: ``a/b``, ``x^2``, ``√(x+1)``."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element

from ....reading.scripts import APART
from .package import M, W

_NO_TEXT = frozenset({f"{M}ctrlPr", f"{W}del", f"{W}rPr", f"{M}rPr", f"{W}moveFrom"})


def linear(element: Element) -> str:
    """Return an equation, or a part of one, as a line for ``with_marks``.

    Parts of fractions, roots and scripts that are more than a letter or a number stand in parentheses, so that there is
    one reading only.
    """
    write = _WRITERS.get(element.tag)
    return _inside(element) if write is None else write(element)


def _inside(element: Element | None) -> str:
    if element is None:
        return ""
    return "".join(linear(each) for each in element if each.tag not in _NO_TEXT)


def _part(element: Element, name: str) -> str:
    return _inside(element.find(f"{M}{name}"))


def _property(element: Element, name: str, default: str) -> str:
    found = element.find(f"{element.tag}Pr/{M}{name}")
    return default if found is None else found.get(f"{M}val", default)


def _grouped(text: str) -> str:
    inner = text.strip()
    return inner if inner.isdecimal() or len(inner) == 1 else f"({inner})"


def _with_scripts(base: str, lower: str, upper: str) -> str:
    return base + (f"_{_grouped(lower)}" if lower.strip() else "") + (f"^{_grouped(upper)}" if upper.strip() else "")


def _scripts(element: Element) -> str:
    return _with_scripts(_part(element, "e"), _part(element, "sub"), _part(element, "sup"))


def _before(element: Element) -> str:
    return f"{_with_scripts('', _part(element, 'sub'), _part(element, 'sup'))} {_part(element, 'e')}"


def _fraction(element: Element) -> str:
    if _property(element, "type", "bar") == "noBar":  # a binomial coefficient
        return f"{_part(element, 'num')}; {_part(element, 'den')}"
    return f"{APART}{_grouped(_part(element, 'num'))}/{_grouped(_part(element, 'den'))}{APART}"


def _root(element: Element) -> str:
    degree = _part(element, "deg").strip()
    return f"{f'root_{_grouped(degree)}' if degree else '√'}({_part(element, 'e')})"


def _sum(element: Element) -> str:
    sign = _property(element, "chr", "∫")
    return f"{_with_scripts(sign, _part(element, 'sub'), _part(element, 'sup'))} {_part(element, 'e')}"


def _delimited(element: Element) -> str:
    inner = _property(element, "sepChr", "|").join(map(_inside, element.findall(f"{M}e")))
    return f"{_property(element, 'begChr', '(')}{inner}{_property(element, 'endChr', ')')}"


def _function(element: Element) -> str:
    return f"{_part(element, 'fName')} {_part(element, 'e')}"


def _limit(element: Element) -> str:
    lower, upper = _part(element, "lim"), ""
    if element.tag == f"{M}limUpp":
        lower, upper = upper, lower
    return _with_scripts(_part(element, "e"), lower, upper)


def _accented(element: Element) -> str:
    text = _part(element, "e")
    sign = _property(element, "chr", "\u0302")
    return f"{text}{sign}" if len(text.strip()) == 1 else f"({text}){sign}"


def _overlined(element: Element) -> str:
    below = _property(element, "pos", "bot") == "bot"
    return f"{'underline' if below else 'overline'}({_part(element, 'e')})"


def _matrix(element: Element) -> str:
    rows = (", ".join(map(_inside, row.findall(f"{M}e"))) for row in element.findall(f"{M}mr"))
    return f"[{'; '.join(rows)}]"


def _lines(element: Element) -> str:
    return "; ".join(map(_inside, element.findall(f"{M}e")))


def _phantom(element: Element) -> str:
    return "" if _property(element, "show", "1") in ("0", "off", "false") else _part(element, "e")


def _text(element: Element) -> str:
    return element.text or ""


_WRITERS: dict[str, Callable[[Element], str]] = {
    f"{M}t": _text,
    f"{W}t": _text,
    f"{W}tab": lambda _: " ",
    f"{W}br": lambda _: " ",
    f"{M}f": _fraction,
    f"{M}rad": _root,
    f"{M}sSup": _scripts,
    f"{M}sSub": _scripts,
    f"{M}sSubSup": _scripts,
    f"{M}sPre": _before,
    f"{M}nary": _sum,
    f"{M}d": _delimited,
    f"{M}func": _function,
    f"{M}limLow": _limit,
    f"{M}limUpp": _limit,
    f"{M}acc": _accented,
    f"{M}bar": _overlined,
    f"{M}m": _matrix,
    f"{M}eqArr": _lines,
    f"{M}phant": _phantom,
}
