"""Selectors of CSS, as far as the elements of a page alone tell what they choose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_IDENT = r"(?:[\w-]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}\s?|\\[^\n0-9a-fA-F])++"
_TOKEN = re.compile(
    rf"""\#(?P<id>{_IDENT}) | \.(?P<class>{_IDENT}) | (?P<tag>{_IDENT}|\*)
    | \[\s*+(?P<attribute>{_IDENT})\s*+
        (?:(?P<test>[~|^$*]?=)\s*+(?P<value>"[^"]*+"|'[^']*+'|{_IDENT})\s*+(?P<case>[iIsS]?)\s*+)?+\]
    | (?P<element>::{_IDENT}(?:\([^()]*+\))?+)
    | :(?P<state>{_IDENT})(?P<inner>\((?:[^()]|\([^()]*+\))*+\))?+
    | \s*+(?P<comma>,)\s*+ | \s*+(?P<beside>[>+~])\s*+ | (?P<space>\s++)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_OLD_ELEMENTS = frozenset({"before", "after", "first-letter", "first-line"})
_PASSING = frozenset(
    {"hover", "focus", "focus-within", "focus-visible", "active", "target", "target-within", "visited", "popover-open"}
    | {"autofill", "fullscreen", "modal", "playing", "user-invalid", "user-valid", "placeholder-shown"}
)
"""States that no element has in a page that was just opened."""
_MOST_CHARACTERS = 50_000
"""Longest selectors of a rule that are read."""
_MOST_PARTS = 20
_MOST_CODE = 0x10FFFF


@dataclass(frozen=True, kw_only=True)
class AttributeTest:
    """What a selector wants of an attribute."""

    name: str
    test: str = ""
    """One of the signs =, ~=, |=, ^=, $= and *=; "" if any value will do."""
    value: str = ""
    is_any_case: bool = False

    def fits(self, attributes: Mapping[str, object]) -> bool:
        """Return whether the attributes of an element fit."""
        if self.name not in attributes:
            return False
        found, wanted = str(attributes[self.name] or ""), self.value
        if self.is_any_case:
            found, wanted = found.lower(), wanted.lower()
        if self.test in ("", "="):
            return not self.test or found == wanted
        if self.test == "|=":
            return found == wanted or found.startswith(f"{wanted}-")
        if not wanted:
            return False
        if self.test == "~=":
            return wanted in found.split()
        return {"^=": found.startswith, "$=": found.endswith, "*=": found.__contains__}[self.test](wanted)


@dataclass(frozen=True, kw_only=True)
class Compound:
    """What a part of a selector wants of one element."""

    tag: str = ""
    ids: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    attributes: tuple[AttributeTest, ...] = ()
    no_tags: frozenset[str] = frozenset()
    no_classes: frozenset[str] = frozenset()
    no_attributes: tuple[AttributeTest, ...] = ()

    def fits(self, name: str, classes: frozenset[str], attributes: Mapping[str, object]) -> bool:
        """Return whether an element fits; ``classes`` are those of its attribute."""
        return (
            (not self.tag or self.tag == name)
            and self.classes <= classes
            and (not self.ids or self.ids == {attributes.get("id")})
            and all(each.fits(attributes) for each in self.attributes)
            and name not in self.no_tags
            and self.no_classes.isdisjoint(classes)
            and not any(each.fits(attributes) for each in self.no_attributes)
        )

    def key(self) -> str:
        """Return what an element must have to fit: ``#id``, ``.class``, ``[attribute`` or a tag; "*" for none."""
        if self.ids:
            return f"#{min(self.ids)}"
        if self.classes:
            return f".{min(self.classes)}"
        return self.tag or (f"[{self.attributes[0].name}" if self.attributes else "*")


@dataclass(frozen=True, kw_only=True)
class Selector:
    """Parts for elements that stand around each other or side by side, the chosen one last."""

    parts: tuple[tuple[str, Compound], ...]
    """Each with how it stands to the part before: " ", ">", "+" or "~"; "" for the first."""
    specificity: tuple[int, int, int]
    is_sure: bool = True
    """False if the selector wants more than is read here."""

    def is_name(self) -> bool:
        """Return whether a class or an id alone is wanted, of elements of one kind or of any."""
        (_, last), *more = self.parts
        is_one = len(last.ids) + len(last.classes) == sum(self.specificity[:2]) == 1
        return self.is_sure and not more and is_one


def read_selectors(text: str) -> Sequence[Selector]:
    """Return the selectors of a rule that may choose an element; none if any is not written as CSS has them.

    What scripts and readers do to a page, such as ``:hover``, chooses no element. Other wishes that are not read,
    such as ``:nth-child(2)``, are left out, and the selector is unsure.

    >>> [each.specificity for each in read_selectors(".a, #b > p.c, a:hover, p::before")]
    [(0, 1, 0), (1, 1, 1)]
    """
    found: list[Selector] = []
    reader = _SelectorReader()
    at = 0
    text = text.strip()
    if len(text) > _MOST_CHARACTERS:
        return ()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return ()
        at = token.end()
        if token["comma"]:
            if reader.is_empty():
                return ()
            found += reader.selectors()
            reader = _SelectorReader()
        else:
            reader.take(token)
    return () if reader.is_empty() else [*found, *reader.selectors()]


class _SelectorReader:
    """One selector, as far as it is read."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, Compound]] = []
        self._beside = ""
        self._names: dict[str, list[str]] = {"tag": [], "id": [], "class": [], "no tag": [], "no class": []}
        self._attributes: list[AttributeTest] = []
        self._no_attributes: list[AttributeTest] = []
        self._counts = [0, 0, 0]
        self._is_sure = self._is_possible = True
        self._is_open = False

    def is_empty(self) -> bool:
        """Return whether the selector ends before its chosen element."""
        return not self._is_open

    def take(self, token: re.Match[str]) -> None:
        """Read one token more."""
        if beside := (token["beside"] or (" " if token["space"] else "")):
            self._is_possible &= self._is_open
            self._end_part()
            self._beside = beside
            return
        self._is_open = True
        if token["element"]:
            self._is_possible = False
        elif token["state"]:
            self._take_state(token["state"].lower(), (token["inner"] or "")[1:-1].strip())
        else:
            self._take_name(token, "")

    def _take_name(self, token: re.Match[str], no: str) -> None:
        for at, kind in enumerate(("id", "class", "tag")):
            if token[kind]:
                self._counts[at] += token[kind] != "*"
                name = _unescaped(token[kind])
                if no and kind == "id":
                    self._no_attributes.append(AttributeTest(name="id", test="=", value=name))
                elif name != "*" or no:
                    self._names[no + kind].append(name.lower() if kind == "tag" else name)
                return
        self._counts[1] += 1
        value = token["value"] or ""
        test = AttributeTest(
            name=_unescaped(token["attribute"]).lower(),
            test=token["test"] or "",
            value=_unescaped(value[1:-1] if value[:1] in ("'", '"') else value),
            is_any_case=(token["case"] or "").lower() == "i",
        )
        (self._no_attributes if no else self._attributes).append(test)

    def _take_state(self, name: str, inner: str) -> None:
        if name in _OLD_ELEMENTS or name in _PASSING:
            self._is_possible = False
        elif name == "not" and (tokens := _simple(inner)):
            for token in tokens:
                self._take_name(token, "no ")
        elif name == "root":
            self._names["tag"].append("html")
            self._counts[1] += 1
        elif name in ("link", "any-link"):
            self._attributes.append(AttributeTest(name="href"))
            self._counts[1] += 1
        elif name == "checked":
            self._attributes.append(AttributeTest(name="checked"))
            self._counts[1] += 1
        else:
            self._is_sure = False
            self._counts[1] += name != "where"

    def _end_part(self) -> None:
        names = {kind: frozenset(found) for kind, found in self._names.items()}
        self._is_possible &= len(names["tag"]) < 2 and len(names["id"]) < 2  # no element has two
        self._is_sure &= len(self._parts) < _MOST_PARTS
        part = Compound(
            tag=min(names["tag"], default=""),
            ids=names["id"],
            classes=names["class"],
            attributes=tuple(self._attributes),
            no_tags=names["no tag"],
            no_classes=names["no class"],
            no_attributes=tuple(self._no_attributes),
        )
        if len(self._parts) < _MOST_PARTS:
            self._parts.append((self._beside if self._parts else "", part))
        else:
            self._parts[-1] = (self._beside, part)
        for found in self._names.values():
            found.clear()
        self._attributes.clear()
        self._no_attributes.clear()
        self._is_open = False

    def selectors(self) -> Sequence[Selector]:
        """Return the selector; none if no element fits it."""
        self._end_part()
        ids, classes, tags = self._counts
        found = Selector(parts=tuple(self._parts), specificity=(ids, classes, tags), is_sure=self._is_sure)
        return [found] if self._is_possible else []


def _simple(text: str) -> Sequence[re.Match[str]]:
    """Return the tokens of selectors of one name or attribute each; none for other selectors."""
    tokens: list[re.Match[str]] = []
    for part in text.split(","):
        token = _TOKEN.fullmatch(part.strip())
        if token is None or not (token["id"] or token["class"] or token["tag"] or token["attribute"]):
            return ()
        tokens.append(token)
    return tokens


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _character(found[1]) if found[1] else found[2], text) if "\\" in text else text


def _character(code: str) -> str:
    number = int(code, 16)
    return chr(number) if 0 < number <= _MOST_CODE else "\ufffd"
