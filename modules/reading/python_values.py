"""Values as Python, numpy and pandas print them, which is how pandas writes a column of lists into a CSV file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time

MAX_DEPTH = 20

_STRING = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_NUMBER = r"[-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
_TOKEN = re.compile(rf"\s*+(?:({_STRING})|({_NUMBER})(?![\w.])|(<NA>|\w++)|(\.\.\.|[\[\](){{}},:=.]))", re.DOTALL)
_ESCAPE = re.compile(
    r"""\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))""", re.DOTALL
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"', "\n": ""}
_WORDS: Mapping[str, object] = {"True": True, "False": False, **dict.fromkeys(("None", "nan", "NaN", "NaT", "<NA>"))}
_QUOTED = frozenset({"Decimal", "Timestamp", "UUID", "PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"})
"""Classes that print as their name around the quoted text of a value."""
_MOMENTS: Mapping[str, Callable[..., object]] = {"date": date, "datetime": datetime, "time": time}
"""What prints as ``datetime.`` and its name around numbers."""
_CLOSING = {"[": "]", "(": ")", "{": "}"}


def python_value(text: str) -> object:
    """Return the list, mapping, text or number that a text prints; tuples, sets and arrays come back as lists.

    Items may stand without commas between them, as numpy prints an array. Decimals, dates, times, paths and UUIDs come
    back as texts.

    >>> python_value("['1984', 'nineteen eighty-four']"), python_value("['a'\\n 'b']")
    (['1984', 'nineteen eighty-four'], ['a', 'b'])

    Raises:
        ValueError: It prints none of these, more than ``MAX_DEPTH`` of them in each other, or an array of which numpy
            left items out.
    """
    reader = _Reader(text)
    value = reader.value(0)
    reader.end()
    return value


class _Reader:
    """Reads a text token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._token: tuple[str, str, str, str] = ("", "", "", "")
        self._next()

    def value(self, depth: int) -> object:
        """Read one value."""
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        string, number, word, mark = self._token
        if string or number:
            self._next()
            return _unquoted(string) if string else _number(number)
        if word in _WORDS:
            self._next()
            return _WORDS[word]
        if word and (named := {"np": self._scalar, "array": self._array, "datetime": self._moment}.get(word)):
            self._next()
            return named(depth)
        if word in _QUOTED:
            self._next()
            return self._quoted(depth)
        if mark in _CLOSING:
            self._next()
            return self._items(_CLOSING[mark], depth)
        raise ValueError("it is cut off by numpy, which left items out" if mark == "..." else "it is no list")

    def end(self) -> None:
        """Check that nothing follows."""
        if any(self._token) or self._text[self._place :].strip():
            raise ValueError("it does not end behind its list")

    def _items(self, closing: str, depth: int) -> object:
        items: list[object] = []
        pairs: dict[str, object] = {}
        while self._token[3] != closing:
            item = self.value(depth + 1)
            if closing == "}" and self._token[3] == ":":
                self._next()
                pairs[_key(item, pairs)] = self.value(depth + 1)
            else:
                items.append(item)
            if self._token[3] == ",":
                self._next()
        if items and pairs:
            raise ValueError("it is neither a set nor a mapping")
        self._next()
        return pairs if closing == "}" and not items else items

    def _scalar(self, depth: int) -> object:
        """Read a scalar as numpy 2 prints it within a list: ``np.str_('a')``."""
        self._expect(".")
        self._next()
        self._expect("(")
        value = self.value(depth + 1)
        self._expect(")")
        return value

    def _quoted(self, depth: int) -> object:
        """Read what stands behind the name of a class: a text, and perhaps more that is known of it."""
        texts = self._arguments(depth)
        if len(texts) != 1 or not isinstance(texts[0], str):
            raise ValueError("it holds a value that prints no text")
        return None if texts[0].casefold() == "nan" else texts[0]

    def _moment(self, depth: int) -> object:
        """Read a date or time behind the word datetime: ``.date(2020, 1, 1)``."""
        self._expect(".")
        made = _MOMENTS.get(self._token[2])
        if made is None:
            raise ValueError("it is no list")
        self._next()
        try:
            return str(made(*self._arguments(depth)))
        except TypeError as error:
            raise ValueError("it holds no date") from error

    def _arguments(self, depth: int) -> list[object]:
        """Read arguments in parentheses; those with a name are left out."""
        self._expect("(")
        found: list[object] = []
        while self._token[3] != ")":
            if self._token[2] and self._token[2] not in _WORDS:
                self._next()
                self._expect("=")
                self.value(depth + 1)
            else:
                found.append(self.value(depth + 1))
            if self._token[3] != ")":
                self._expect(",")
        self._next()
        return found

    def _array(self, depth: int) -> object:
        """Read what stands behind the word array: its items, and perhaps the kind of these."""
        self._expect("(")
        items = self.value(depth + 1)
        while self._token[3] != ")":
            self._expect(",")
            if self._token[2] in ("dtype", "shape"):
                self._next()
                self._expect("=")
                self._next() if self._token[2] else self.value(depth + 1)
        self._next()
        return items

    def _expect(self, mark: str) -> None:
        if self._token[3] != mark:
            raise ValueError(f"it lacks {mark!r}")
        self._next()

    def _next(self) -> None:
        found = _TOKEN.match(self._text, self._place)
        self._token = ("", "", "", "")
        if found is not None:
            self._token = (found[1] or "", found[2] or "", found[3] or "", found[4] or "")
            self._place = found.end()


def _key(item: object, known: Mapping[str, object]) -> str:
    if not isinstance(item, str | int):
        raise ValueError("a key is no text")
    if str(item) in known:
        raise ValueError(f"the key {item!r} stands twice")
    return str(item)


def _number(text: str) -> object:
    if len(digits := text.lstrip("+-")) > 1 and digits[0] == "0" and digits[1].isdigit():
        raise ValueError(f"{text} is no number that Python prints")
    return float(text) if set(text) & set(".eE") else int(text)


def _unquoted(token: str) -> str:
    return _ESCAPE.sub(_unescaped, token[1:-1]) if "\\" in token else token[1:-1]


def _unescaped(found: re.Match[str]) -> str:
    if found[4] is not None:
        return _LETTERS.get(found[4], found[0])
    return chr(int(found[1] or found[2] or found[3], 16))
