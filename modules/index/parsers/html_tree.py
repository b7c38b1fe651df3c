"""The tree of an HTML page, in which elements end where browsers end them when their end tags are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bs4 import BeautifulSoup
from bs4.element import Tag

from .html_hidden import BLOCKS

_CELLS = frozenset({"td", "th", "caption", "colgroup"})
_PARTS_OF_TABLES = frozenset({"tbody", "thead", "tfoot"})
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_HOLDERS = frozenset({"table", "td", "th", "caption", "object", "template", "button"})
"""Elements whose end tags cannot be left out by what begins inside of them."""
_SPECIAL = (BLOCKS | _HOLDERS | _LISTS | _PARTS_OF_TABLES | {"tr"}) - {"address", "div", "p", "option", "optgroup"}
_AFTER_P = (BLOCKS | _LISTS | {"table", "listing", "xmp", "plaintext"}) - {
    *("body", "html", "option", "optgroup", "select", "legend", "object", "caption"),
}
"""Elements that end a paragraph, as HTML has them."""
_REOPENED = frozenset({"s", "strike"})
"""Elements that go on in the next block where their own one ends; others of the kind change no text."""


@dataclass(frozen=True, kw_only=True)
class _Scope:
    """The open elements that one kind of element is ended in, from the outermost one on."""

    ended: frozenset[str]
    """Elements whose end tags may be left out."""
    around: frozenset[str]
    """Elements that what begins inside of them ends nothing outside of."""


_TABLE, _P, _ITEM, _TERM, _OPTION, _READING, _ENDED_ITEM, _ENDED_DT, _ENDED_DD = range(9)
_SCOPES = {
    _TABLE: _Scope(ended=_CELLS | _PARTS_OF_TABLES | {"tr"}, around=frozenset({"table", "template"})),
    _P: _Scope(ended=frozenset({"p"}), around=_HOLDERS),
    _ITEM: _Scope(ended=frozenset({"li"}), around=_SPECIAL - {"li"}),
    _TERM: _Scope(ended=frozenset({"dt", "dd"}), around=_SPECIAL - {"dt", "dd"}),
    _OPTION: _Scope(ended=frozenset({"option", "optgroup"}), around=frozenset({"select", "datalist"})),
    _READING: _Scope(ended=frozenset({"rt", "rp", "rb", "rtc"}), around=frozenset({"ruby"})),
    _ENDED_ITEM: _Scope(ended=frozenset({"li"}), around=_HOLDERS | _LISTS),
    _ENDED_DT: _Scope(ended=frozenset({"dt"}), around=_HOLDERS),
    _ENDED_DD: _Scope(ended=frozenset({"dd"}), around=_HOLDERS),
}

_BEGUN: Mapping[str, Sequence[tuple[int, frozenset[str]]]] = {
    **{name: [(_P, frozenset({"p"}))] for name in _AFTER_P},
    **{name: [(_TABLE, _CELLS)] for name in ("td", "th")},
    "tr": [(_TABLE, _CELLS | {"tr"})],
    **{name: [(_TABLE, _SCOPES[_TABLE].ended)] for name in (*_PARTS_OF_TABLES, "caption", "colgroup")},
    "li": [(_ITEM, frozenset({"li"})), (_P, frozenset({"p"}))],
    **{name: [(_TERM, frozenset({"dt", "dd"})), (_P, frozenset({"p"}))] for name in ("dt", "dd")},
    "option": [(_OPTION, frozenset({"option"}))],
    "optgroup": [(_OPTION, _SCOPES[_OPTION].ended)],
    **{name: [(_READING, frozenset({"rt", "rp"}))] for name in ("rt", "rp")},
    **{name: [(_READING, _SCOPES[_READING].ended)] for name in ("rb", "rtc")},
}
"""What ends when an element begins."""
_ENDED: Mapping[str, int] = {
    name: at for at in (_TABLE, _P, _OPTION, _READING, _ENDED_ITEM, _ENDED_DT, _ENDED_DD) for name in _SCOPES[at].ended
}
"""Where an end tag finds what it ends; one that finds nothing there is ignored."""
_TRACKED: Mapping[str, Sequence[int]] = {
    name: [at for at, scope in _SCOPES.items() if name in scope.ended | scope.around]
    for name in frozenset[str]().union(*(scope.ended | scope.around for scope in _SCOPES.values()))
}
_WITH_INNER = frozenset({_P, _ITEM, _TERM})


class HtmlTree(BeautifulSoup):
    """A tree by Python's own parser, which knows of no end tags that may be left out.

    Source: the rules for "implied end tags" of the HTML standard, for tables, paragraphs, items, terms, options and
    readings. Each tag takes constant time, however deep it stands.
    """

    def reset(self) -> None:
        """Begin anew, as for each encoding that is tried."""
        self._open: list[list[str]] = [[] for _ in _SCOPES]
        super().reset()

    def pushTag(self, tag: Tag) -> None:  # noqa: N802 - as Beautiful Soup calls it
        """Open an element."""
        super().pushTag(tag)
        for at in _TRACKED.get(tag.name, ()):
            self._open[at].append(tag.name)

    def popTag(self) -> Tag | None:  # noqa: N802 - as Beautiful Soup calls it
        """Close the innermost element."""
        closed = self.tagStack[-1].name if self.tagStack else ""
        for at in _TRACKED.get(closed, ()):
            self._open[at].pop()
        return super().popTag()

    def handle_starttag(self, name: str, *args: object, **options: object) -> Tag | None:
        """Open an element, and close before it what it ends."""
        for at, ended in _BEGUN.get(name, ()):
            opened = self._open[at]
            while opened and opened[-1] in ended:
                self._end(opened[-1], has_inner=at in _WITH_INNER)
        return super().handle_starttag(name, *args, **options)  # type: ignore[arg-type]

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        """Close an element, if one is open that the end tag can close."""
        at = _ENDED.get(name)
        if at is not None:
            around = _SCOPES[at].around
            inner = next((each for each in reversed(self._open[at]) if each == name or each in around), "")
            if inner != name:
                if name != "p":
                    return
                super().handle_starttag(name, None, None, {})  # a paragraph of its own
        super().handle_endtag(name, nsprefix)

    def _end(self, name: str, *, has_inner: bool) -> None:
        """Close an element whose end tag is left out. A strike-out that is open within it is opened again behind it."""
        self.endData()
        inner = None
        while (tag := self.tagStack[-1]).name != name:
            inner = tag if has_inner and tag.name in _REOPENED else inner
            self.popTag()
        self.popTag()
        if inner is not None:
            super().handle_starttag(inner.name, None, None, {key: str(value) for key, value in inner.attrs.items()})
