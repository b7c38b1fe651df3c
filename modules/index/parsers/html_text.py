"""The text of an HTML tree: what a reader sees, in order, line by line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ...reading.scripts import APART, Script, with_marks
from .html_cascade import PageStyles, page_styles
from .html_formulas import FORMULA_STEPS, LEVEL, LOWERED, RAISED
from .html_hidden import BLOCKS, attribute, hidden_from_speech, is_hidden
from .html_katex import katex_steps
from .html_lists import ListMarks
from .html_styles import HtmlStyle, ems_of, is_of_script
from .html_tables import TableText

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import PageElement, Tag

    from .html_formulas import FormulaSteps
    from .html_tables import Steps

_UNTOLD = {
    "audio": "audio recording",
    "canvas": "canvas",
    "embed": "embedded file",
    "mjx-math": "formula",
    "video": "video",
}
"""Elements whose content is what a browser shows in their place only if it is old."""
_MAX_FRAMES = 3
_KEPT_SPACE = "\x00"
"""Stands before the text is cut into lines, as the marks of scripts do; foreign text has none of them."""
_INVISIBLE = "\xad\u2061\u2062\u2063\u2064"
"""Hyphens that a line may break at, and operators of formulas that nobody sees."""
_UNMARKED = {**dict.fromkeys(map(ord, f"\x00\x01\x02\x03{APART}{_INVISIBLE}")), ord("\n"): " "}
_MARKED = re.compile(f"[\x00-\x04{_INVISIBLE}\n]")
_KEPT = {**_UNMARKED, ord("\n"): "\n", ord(" "): _KEPT_SPACE, ord("\t"): _KEPT_SPACE * 4, ord("\r"): None}
_SPACES = re.compile(r"[^\S\x00]+")
_SCRIPT_MARKS = re.compile("([\x01-\x03])")
_SCRIPTS: Mapping[str, Script] = {RAISED: "^", LOWERED: "_", LEVEL: ""}
_PLAIN = HtmlStyle()


def tree_of(markup: str | bytes, encoding: str | None = None) -> BeautifulSoup:
    """Return the tree of a page; None as its encoding has it guessed."""
    from .html_tree import HtmlTree  # noqa: PLC0415 - keeps the package's import fast

    # Neither lines nor lists of classes are needed, and each takes time.
    return HtmlTree(
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
            depth = max(depth + (-1 if part == LEVEL else 1), 0)  # a script may begin on a line before
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
        self._struck_blocks = [False]
        self._unspoken = 0
        self._styles = [PageStyles(styles={}, shown_within={})]
        """Of the page and of the frames around the place that is read."""
        self._readings: list[list[str]] = []

    def read(self, page: Tag) -> str:
        """Return the text for ``lines_of``."""
        from bs4.element import CData, NavigableString, Tag, TemplateString  # noqa: PLC0415 - keeps the package's import fast

        self._styles.append(page_styles(page))
        texts = frozenset({NavigableString, CData, TemplateString})  # comments and doctypes are other kinds of string
        waiting: Steps = [page]
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if kind in texts:
                self._write(node)  # type: ignore[arg-type]
            elif kind is str:
                self._tables.write(node)  # type: ignore[arg-type]
            elif isinstance(node, Tag):
                if is_hidden(node, self._style(node)):
                    waiting += reversed(self._shown_within(node))
                elif not node.attrs or attribute(node, "aria-hidden").lower() != "true":
                    waiting += reversed(self._steps(node))
                else:
                    waiting += reversed(self._unspoken_steps(node))
            elif callable(node):
                node()
        return self._tables.text()

    def _style(self, node: Tag) -> HtmlStyle:
        return self._styles[-1].styles.get(id(node), _PLAIN) if self._styles[-1].styles else _PLAIN

    def _shown_within(self, node: Tag) -> Steps:
        """Return what is visible in an element that is not."""
        shown: Steps = []
        for each in self._styles[-1].shown_within.get(id(node), ()):
            shown += [" ", each]
        return shown

    def _unspoken_steps(self, node: Tag) -> Steps:
        """Return the steps of what is hidden from those who hear the page, if it is read."""

        def begin() -> None:
            self._unspoken += 1

        def end() -> None:
            self._unspoken -= 1

        # Each level looks through all below it.
        kind = hidden_from_speech(node) if self._unspoken < _MOST_UNSPOKEN else "read"
        if kind == "unsure":
            self.left_out["possibly hidden passage"] += 1
        return [begin, *self._steps(node), end] if kind == "read" else []

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
        style = self._style(node)
        if node.name in BLOCKS or style.is_block:
            return ["\n", *self._contents(node), "\n"]
        if node.attrs and _is_note(node):
            return _note(node)
        if node.attrs and (box := katex_steps(node)) is not None:
            return [*box]
        steps = self._styled_steps(node)
        return [" ", *steps, " "] if style.is_set_apart else steps

    def _styled_steps(self, node: Tag) -> Steps:
        """Return the steps of an element within a line, by its style."""
        style = self._style(node)
        if style.script and (stacked := self._stacked(node)) is not None:
            steps: Steps = [RAISED, stacked[0], LEVEL, LOWERED, stacked[1], LEVEL]
            return self._struck_steps(steps, node) if style.is_struck else steps
        if style.script == "^":
            return self._raised_steps(node)
        return _script(LOWERED, self._inner(node)) if style.script else self._inner(node)

    def _stacked(self, node: Tag) -> tuple[str, str] | None:
        """Return the raised and the lowered text of an element that has one above the other; None for any other."""
        from bs4.element import Tag  # noqa: PLC0415 - keeps the package's import fast

        texts = [""]
        is_ended = False  # whether the next text stands in a line below
        waiting: list[PageElement | None] = [*reversed(node.contents)]
        for _ in range(_MOST_STACKED):
            if not waiting or len(texts) > 2 or len(texts[-1]) > _MOST_STACKED:
                break
            part = waiting.pop()
            if isinstance(part, str):
                if is_ended and part.strip():
                    texts.append("")
                    is_ended = False
                texts[-1] += part.translate(_UNMARKED)
                continue
            if not isinstance(part, Tag):  # the end of a block
                is_ended |= bool(texts[-1].strip())
                continue
            is_block = part.name in BLOCKS or self._style(part).is_block
            is_ended |= part.name == "br" or (is_block and bool(texts[-1].strip()))
            waiting += [*([None] if is_block else []), *reversed(part.contents)]
        above, below = (texts[0].strip(), texts[-1].strip()) if len(texts) == 2 else ("", "")
        return (above, below) if above and below and not waiting else None

    def _inner(self, node: Tag) -> Steps:
        """Return the steps of what an element within a line holds, struck out where it is."""
        style = self._style(node)
        steps: Steps = self._deleted_steps(node) if style.is_struck else [*node.contents]
        return _set_apart(steps) if style.sets_parts_apart else steps

    def _contents(self, node: Tag) -> Steps:
        """Return the steps of what a block holds, struck out where it is, or one around it."""
        style = self._style(node)
        is_struck = style.is_struck or self._struck_blocks[-1]
        steps: Steps = self._deleted_steps(node) if is_struck else [*node.contents]
        return _set_apart(steps) if style.sets_parts_apart else steps

    def _deletion_steps(self, node: Tag) -> Steps:
        """Return the steps of an element that is struck out unless its style says otherwise."""
        return self._contents(node) if self._style(node).is_struck is False else self._deleted_steps(node)

    def _deleted_steps(self, node: Tag) -> Steps:
        """Return the steps of what is struck out: the lines and the blocks in it are so one by one."""

        def begin() -> None:
            self._struck_blocks.append(True)

        def end() -> None:
            self._struck_blocks.pop()

        if self._struck or len(self._struck_blocks) > _MOST_STRUCK:  # each level looks through all below it
            return list(node.contents)
        steps: Steps = []
        for has_blocks, group in groupby(node.contents, key=_has_blocks):
            parts = [*group]
            if not has_blocks:
                steps += self._struck_steps(parts, *parts)
            for part in parts if has_blocks else ():
                steps += [begin, part, end]
        return steps

    def _struck_steps(self, steps: Sequence[PageElement | str | Callable[[], None]], *parts: PageElement) -> Steps:
        """Return steps with marks around them, unless what they read has no text or stands between marks already."""
        if self._struck:
            return [*steps]
        mark = "~~" if any(part.get_text(strip=True) for part in parts) else ""

        def begin() -> None:
            self._struck += 1

        def end() -> None:
            self._struck -= 1

        return [begin, mark, *steps, mark, end]

    def _kept_steps(self, node: Tag) -> Steps:
        def begin() -> None:
            if not self._kept and "\n" in node.get_text().strip():
                self._tables.keep_lines()
            self._kept += 1

        def end() -> None:
            self._kept -= 1

        return ["\n", begin, *self._contents(node), end, "\n"]

    def _list_steps(self, node: Tag) -> Steps:
        def begin() -> None:
            self._lists.begin(node, self._style(node).list_kind)

        return ["\n", begin, *self._contents(node), self._lists.end, "\n"]

    def _item_steps(self, node: Tag) -> Steps:
        return ["\n", lambda: self._tables.write(self._lists.mark(node)), *self._contents(node), "\n"]

    def _table_steps(self, node: Tag) -> Steps:
        contents = self._contents(node)
        return self._tables.steps(node, contents) if self._tables.takes(node) else ["\n", *contents, "\n"]

    def _raised_steps(self, node: Tag) -> Steps:
        if self._raised:
            return _script(RAISED, self._inner(node))

        def begin() -> None:
            self._raised += 1

        def end() -> None:
            self._raised -= 1

        text = node.get_text()
        link = node.find("a", href=re.compile("^[^#]*#."))
        is_note = link or _is_note(node) or text.strip()[:1] == "["
        return _note(node) if is_note else [begin, *_script(RAISED, self._inner(node)), end]

    def _drawing_steps(self, node: Tag) -> Steps:
        is_formula = node.parent is not None and node.parent.name == "mjx-container"
        self.left_out["formula"] += is_formula
        return [" ", *([] if is_formula else self._inner(node)), " "]

    def _drawn_text_steps(self, node: Tag) -> Steps:
        """Return the steps of a part of a drawing's text, which may be a script, or stand elsewhere."""
        steps, rise = self._styled_steps(node), -ems_of(attribute(node, "dy"))
        is_smaller = "font-size" in node.attrs or "font-size" in attribute(node, "style").lower()
        if is_smaller and is_of_script(rise):
            return _script(RAISED if rise > 0 else LOWERED, steps)
        letters = sum(len(each.strip()) for each in node.contents if isinstance(each, str))
        is_placed = ("x" in node.attrs or "y" in node.attrs) and letters != 1  # some place each letter
        return [" ", *steps] if is_placed or abs(rise) >= _NEXT_LINE else steps

    def _ruby_steps(self, node: Tag) -> Steps:
        def begin() -> None:
            self._readings.append([])

        def end() -> None:
            if reading := "".join(self._readings.pop()).strip():
                self._tables.write(f"({reading})")

        return [begin, *self._inner(node), end]

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

        frame = tree_of(source)

        def begin() -> None:
            self._frames += 1
            self._styles.append(page_styles(frame))

        def end() -> None:
            self._frames -= 1
            self._styles.pop()

        return ["\n", begin, frame, end, "\n"]

    def _formula_steps(self, node: Tag) -> Steps:
        def begin() -> None:
            self._formulas += 1

        def end() -> None:
            self._formulas -= 1

        around = "\n" if node.get("display") == "block" else ""
        return [around, begin, *self._inner(node), end, around]


def _plain(text: str) -> str:
    return " ".join(text.translate(_UNMARKED).split())


def _set_apart(steps: Steps) -> Steps:
    """Return the steps of elements that stand apart, such as in a flexible box, with a blank between them."""
    apart: Steps = []
    for each in steps:
        is_apart = getattr(each, "name", None) not in (None, "sup", "sub")
        apart += [" ", each, " "] if is_apart else [each]
    return apart


def _script(mark: str, steps: Steps) -> Steps:
    return [mark, *steps, LEVEL]


def _has_blocks(part: PageElement) -> bool:
    from bs4.element import Tag  # noqa: PLC0415 - keeps the package's import fast

    if not isinstance(part, Tag):
        return False
    inner = (getattr(each, "name", "") for each in part.descendants)
    return part.name in _BLOCKS_OF_TEXT or any(name in _BLOCKS_OF_TEXT for name in inner)


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
    return lambda text, node: [before, *text._inner(node), after]


_NEXT_LINE = 0.8
"""Heights of letters from which on a part of a drawing's text stands on another line."""
_MOST_STACKED = 20
"""Most characters, and parts, of a raised text above a lowered one."""
_MOST_UNSPOKEN = 20
"""Deepest element hidden from speech within others that is looked at before it is read."""
_MOST_STRUCK = 20
"""Deepest element within others that are struck out."""
_BLOCKS_OF_TEXT = BLOCKS | {"table", "tr", "td", "th", "ul", "ol", "li"}
_UNSEEN_INPUTS = frozenset({"hidden", "password", "range", "color", "file"})

_STEPS: Mapping[str, Callable[[HtmlText, Tag], Steps]] = {
    "br": _between("\n", ""),
    "hr": _between("\n", "\n"),
    "wbr": _between("", ""),
    "q": lambda text, node: ["“", *text._styled_steps(node), "”"],
    **dict.fromkeys(("button", "label"), _between(" ", " ")),
    "svg": HtmlText._drawing_steps,
    "text": _between("\n", "\n"),
    "tspan": HtmlText._drawn_text_steps,
    **dict.fromkeys(("del", "s", "strike"), HtmlText._deletion_steps),
    **dict.fromkeys(("pre", "listing", "xmp", "textarea"), HtmlText._kept_steps),
    "ol": HtmlText._list_steps,
    **dict.fromkeys(("ul", "menu", "dir"), HtmlText._list_steps),
    "li": HtmlText._item_steps,
    **dict.fromkeys(("table", "tr", "td", "th", "tbody", "thead", "tfoot"), HtmlText._table_steps),
    "sup": HtmlText._raised_steps,
    "sub": lambda text, node: _script(LOWERED, text._inner(node)),
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
