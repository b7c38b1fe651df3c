"""The text of an HTML tree: what a reader sees, in order, line by line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ...reading.scripts import APART, Script, with_marks
from .html_formulas import FORMULA_STEPS, LEVEL, LOWERED, RAISED
from .html_hidden import BLOCKS, attribute, hidden_from_speech, is_hidden, style_of
from .html_lists import ListMarks
from .html_sheets import drawn_names, hidden_names
from .html_styles import HtmlStyle
from .html_tables import TableText

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import PageElement, Tag

    from .html_formulas import FormulaSteps

    Steps = list[PageElement | str | Callable[[], None]]
    """Elements to read, texts to write, and what to do between."""

_UNTOLD = {
    "audio": "audio recording",
    "canvas": "canvas",
    "embed": "embedded file",
    "video": "video",
}
"""Elements whose content is what a browser shows in their place only if it is old."""
_MAX_FRAMES = 3
_KEPT_SPACE = "\x00"
"""Stands before the text is cut into lines, as the marks of scripts do; foreign text has none of them."""
_UNMARKED = {**dict.fromkeys(map(ord, f"\x00\x01\x02\x03{APART}\xad")), ord("\n"): " "}
_MARKED = re.compile("[\x00-\x04\xad\n]")
_KEPT = {**_UNMARKED, ord("\n"): "\n", ord(" "): _KEPT_SPACE, ord("\t"): _KEPT_SPACE * 4, ord("\r"): None}
_SPACES = re.compile(r"[^\S\x00]+")
_SCRIPT_MARKS = re.compile("([\x01-\x03])")
_SCRIPTS: Mapping[str, Script] = {RAISED: "^", LOWERED: "_", LEVEL: ""}
_PLAIN = HtmlStyle()


def tree_of(markup: str | bytes, encoding: str | None = None) -> BeautifulSoup:
    """Return the tree of a page; None as its encoding has it guessed."""
    from bs4 import BeautifulSoup  # noqa: PLC0415 - keeps the package's import fast

    # Neither lines nor lists of classes are needed, and each takes time.
    return BeautifulSoup(
        markup, "html.parser", from_encoding=encoding, store_line_numbers=False, multi_valued_attributes=None
    )


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of what ``HtmlText`` wrote, without spaces at their ends and without two blank ones in a row."""
    blank = True
    for raw in text.split("\n"):
        line = _SPACES.sub(" ", raw).strip(" ")
        if _MARKED.search(line):
            line = with_marks(_pieces(line)).replace(_KEPT_SPACE, " ").rstrip()
        if line or not blank:
            yield line
        blank = not line


def _pieces(line: str) -> Iterator[tuple[str, Script]]:
    depth, script = 0, LEVEL
    for part in _SCRIPT_MARKS.split(line):
        if part in _SCRIPTS and part:
            depth += -1 if part == LEVEL else 1
            if depth <= 1:
                script = part if depth == 1 and part != LEVEL else (script if depth else LEVEL)
            elif part != LEVEL:  # a script in a script is part of it
                yield _SCRIPTS[part], _SCRIPTS[script]
        elif part:
            yield part, _SCRIPTS[script]


class HtmlText:
    """A reader of one HTML tree; the tree is not changed, and its depth is no matter."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        """Numbers of what a reader sees and the text lacks, by kind."""
        self._tables = TableText(lines_of)
        self._lists = ListMarks()
        self._kept = 0
        self._formulas = 0
        self._frames = 0
        self._raised = 0
        self._struck = 0
        self._drawn: dict[str, HtmlStyle] = {}
        self._readings: list[list[str]] = []

    def read(self, page: Tag) -> str:
        """Return the text for ``lines_of``."""
        from bs4.element import CData, NavigableString, Tag  # noqa: PLC0415 - keeps the package's import fast

        hidden: set[str] = set()
        waiting: Steps = [page]
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if kind is NavigableString or kind is CData:  # comments and doctypes are other kinds of string
                self._write(node)  # type: ignore[arg-type]
            elif kind is str:
                self._tables.write(node)  # type: ignore[arg-type]
            elif isinstance(node, Tag):
                if node.name == "style":
                    hidden.update(hidden_names([node.get_text()]))
                    self._drawn.update(drawn_names(node.get_text()))
                elif not is_hidden(node, hidden) and self._is_read(node):
                    waiting += reversed(self._steps(node))
            elif callable(node):
                node()
        return self._tables.text()

    def _is_read(self, node: Tag) -> bool:
        if not node.attrs or attribute(node, "aria-hidden").lower() != "true":
            return True
        kind = hidden_from_speech(node)
        if kind == "unsure":
            self.left_out["possibly hidden passage"] += 1
        return kind == "read"

    def _write(self, text: str) -> None:
        if self._formulas:
            text = text.strip()
        if self._kept:
            text = text.translate(_KEPT)
        elif _MARKED.search(text):
            text = text.translate(_UNMARKED)
        self._tables.write(text)

    def _steps(self, node: Tag) -> Steps:
        own = _STEPS.get(node.name)
        if own is not None:
            return own(self, node)
        if node.name in _UNTOLD:
            self.left_out[_UNTOLD[node.name]] += 1
            return [" "]
        if not node.attrs:
            return ["\n", *node.contents, "\n"] if node.name in BLOCKS else list(node.contents)
        style = style_of(node) or _PLAIN
        if node.name in BLOCKS or style.is_block:
            is_struck = (style.is_struck or self._drawn_style(node).is_struck) and node.find([*BLOCKS, "table"]) is None
            return ["\n", *(self._struck_steps(node) if is_struck else node.contents), "\n"]
        return _note(node) if _is_note(node) else self._styled_steps(node, style)

    def _styled_steps(self, node: Tag, style: HtmlStyle) -> Steps:
        """Return the steps of an element within a line, given its own style."""
        drawn = self._drawn_style(node)
        script = style.script or drawn.script
        if script:
            return self._raised_steps(node) if script == "^" else _script(LOWERED, node)
        return self._struck_steps(node) if style.is_struck or drawn.is_struck else list(node.contents)

    def _drawn_style(self, node: Tag) -> HtmlStyle:
        """Return what the sheets of the page say of an element by its names."""
        if not self._drawn:
            return _PLAIN
        names = [f".{each}" for each in attribute(node, "class").split()] + [f"#{attribute(node, 'id')}"]
        found = [self._drawn[name] for each in names for name in (each, node.name + each) if name in self._drawn]
        return HtmlStyle(
            script=next((each.script for each in found if each.script), ""),
            is_struck=any(each.is_struck for each in found),
        )

    def _struck_steps(self, node: Tag) -> Steps:
        if self._struck:
            return list(node.contents)

        def begin() -> None:
            self._struck += 1

        def end() -> None:
            self._struck -= 1

        mark = "~~" if node.get_text(strip=True) else ""
        return [begin, mark, *node.contents, mark, end]

    def _kept_steps(self, node: Tag) -> Steps:
        def begin() -> None:
            if not self._kept and "\n" in node.get_text().strip():
                self._tables.keep_lines()
            self._kept += 1

        def end() -> None:
            self._kept -= 1

        return ["\n", begin, *node.contents, end, "\n"]

    def _list_steps(self, node: Tag) -> Steps:
        return ["\n", lambda: self._lists.begin(node), *node.contents, self._lists.end, "\n"]

    def _item_steps(self, node: Tag) -> Steps:
        return ["\n", lambda: self._tables.write(self._lists.mark(node)), *node.contents, "\n"]

    def _table_steps(self, node: Tag) -> Steps:
        return self._tables.steps(node) if self._tables.takes(node) else ["\n", *node.contents, "\n"]

    def _raised_steps(self, node: Tag) -> Steps:
        if self._raised:
            return _script(RAISED, node)

        def begin() -> None:
            self._raised += 1

        def end() -> None:
            self._raised -= 1

        text = node.get_text()
        link = node.find("a", href=re.compile("^[^#]*#."))
        is_note = link or _is_note(node) or text.strip()[:1] == "["
        return _note(node) if is_note else [begin, *_script(RAISED, node), end]

    def _ruby_steps(self, node: Tag) -> Steps:
        def begin() -> None:
            self._readings.append([])

        def end() -> None:
            if reading := "".join(self._readings.pop()).strip():
                self._tables.write(f"({reading})")

        return [begin, *node.contents, end]

    def _reading_steps(self, node: Tag) -> Steps:
        if not self._readings:
            return [" (", *node.contents, ")"]
        self._readings[-1].append(" ".join(node.get_text().translate(_UNMARKED).split()))
        return list(node.find_all("rt")) if node.name == "rtc" else []

    def _picture_steps(self, node: Tag) -> Steps:
        described = node.get("alt")
        if described is None and "1" not in (node.get("width"), node.get("height")):  # a pixel that counts visits
            self.left_out["undescribed picture"] += 1
        return [" ", _plain(attribute(node, "alt")), " "]

    def _input_steps(self, node: Tag) -> Steps:
        kind = attribute(node, "type").lower()
        if kind in ("checkbox", "radio"):
            return [" ☒ " if "checked" in node.attrs else " ☐ "]
        if kind in _UNSEEN_INPUTS:
            return [" "]
        name = "alt" if kind == "image" else "value"
        return [" ", _plain(attribute(node, name) or attribute(node, "placeholder")), " "]

    def _labelled_steps(self, node: Tag) -> Steps:
        label = attribute(node, "label")
        inner = [] if label and node.name == "option" else node.contents
        return ["\n", _plain(label), "\n" if label else "", *inner, "\n"]

    def _frame_steps(self, node: Tag) -> Steps:
        source = attribute(node, "srcdoc")
        if not source or self._frames >= _MAX_FRAMES:
            self.left_out["embedded page"] += 1
            return ["\n"]

        def begin() -> None:
            self._frames += 1

        def end() -> None:
            self._frames -= 1

        return ["\n", begin, tree_of(source), end, "\n"]

    def _formula_steps(self, node: Tag) -> Steps:
        def begin() -> None:
            self._formulas += 1

        def end() -> None:
            self._formulas -= 1

        around = "\n" if node.get("display") == "block" else ""
        return [around, begin, *node.contents, end, around]


def _plain(text: str) -> str:
    return " ".join(text.translate(_UNMARKED).split())


def _script(mark: str, node: Tag) -> Steps:
    return [mark, *node.contents, LEVEL]


def _is_note(node: Tag) -> bool:
    """Return whether an element is the mark of a footnote by its role or class."""
    words = f"{attribute(node, 'role')} {attribute(node, 'class')} {attribute(node, 'epub:type')}".lower()
    return any(word in words for word in ("noteref", "footnote-ref", "footnote_ref", "fnref", "note_20_anchor")) or (
        node.name == "a" and ("footnote" in words or "endnote" in words)
    )


def _note(node: Tag) -> Steps:
    text = _plain(node.get_text()).strip("[]() ")
    return [f" [{text}]"] if text else []


def _of_formula(steps: Callable[[Tag], FormulaSteps]) -> Callable[[HtmlText, Tag], Steps]:
    return lambda _, node: [*steps(node)]


def _between(before: str, after: str) -> Callable[[HtmlText, Tag], Steps]:
    return lambda _, node: [before, *node.contents, after]


_UNSEEN_INPUTS = frozenset({"hidden", "password", "range", "color", "file"})

_STEPS: Mapping[str, Callable[[HtmlText, Tag], Steps]] = {
    "br": _between("\n", ""),
    "hr": _between("\n", "\n"),
    "wbr": _between("", ""),
    "q": _between("“", "”"),
    **dict.fromkeys(("button", "label"), _between(" ", " ")),
    "svg": _between(" ", " "),
    "text": _between("\n", "\n"),
    **dict.fromkeys(("del", "s", "strike"), HtmlText._struck_steps),
    **dict.fromkeys(("pre", "listing", "xmp", "textarea"), HtmlText._kept_steps),
    "ol": HtmlText._list_steps,
    **dict.fromkeys(("ul", "menu", "dir"), HtmlText._list_steps),
    "li": HtmlText._item_steps,
    **dict.fromkeys(("table", "tr", "td", "th", "tbody", "thead", "tfoot"), HtmlText._table_steps),
    "sup": HtmlText._raised_steps,
    "sub": lambda _, node: _script(LOWERED, node),
    "ruby": HtmlText._ruby_steps,
    **dict.fromkeys(("rt", "rtc"), HtmlText._reading_steps),
    "rp": lambda _, node: [],
    **dict.fromkeys(("img", "image"), HtmlText._picture_steps),
    "input": HtmlText._input_steps,
    **dict.fromkeys(("option", "optgroup"), HtmlText._labelled_steps),
    "iframe": HtmlText._frame_steps,
    "math": HtmlText._formula_steps,
    **{name: _of_formula(steps) for name, steps in FORMULA_STEPS.items()},
}
"""How elements are read whose content does not simply follow the text before it."""
