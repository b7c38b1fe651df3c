"""The style of each element of an HTML page, by its own attribute and the style sheets inside of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .html_hidden import HIDDEN, attribute
from .html_selectors import Compound, Selector, read_selectors
from .html_sheets import Declaration, declarations_of, media_apply, sheet_rules
from .html_styles import HtmlStyle, style_of_values

if TYPE_CHECKING:
    from bs4.element import Tag

_MOST_RULES = 20_000
"""Most rules of a page that are read; with more of them none hides anything."""
_MOST_ALIKE = 200
"""Most parts of selectors that want the same class, id or tag of an element; with more of them nothing hides it."""
_UNLAYERED, _OWN = 10**8, 10**9
"""Stand above all layers: rules outside of them, and the ``style`` attribute of an element."""

_Rank = tuple[bool, int, tuple[int, int, int], int]
_NO_CLASSES: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class PageStyles:
    """The styles of the elements of a page, by ``id()`` of the element; elements without any are left out."""

    styles: Mapping[int, HtmlStyle]
    shown_within: Mapping[int, Sequence[Tag]]
    """Of elements that are invisible: the outermost elements in them that are visible again, in order."""


@dataclass(frozen=True, kw_only=True)
class _Rule:
    declarations: Sequence[Declaration]
    specificity: tuple[int, int, int]
    order: int
    layer: int
    hides: bool
    """Whether it hides what it says is hidden."""
    is_sure: bool
    """False if it may only show an element."""


_SHOWN = _Rule(
    declarations=(
        Declaration(name="display", value="inline", is_important=True),
        Declaration(name="visibility", value="visible", is_important=True),
    ),
    specificity=(_OWN, 0, 0),
    order=0,
    layer=-_UNLAYERED,
    hides=False,
    is_sure=False,
)


@dataclass(eq=False, kw_only=True)
class _Step:
    """A part of a selector, with the parts before it."""

    beside: str
    compound: Compound
    before: _Step | None
    rules: list[_Rule] = field(default_factory=list)
    """Of the selectors that end here."""
    next: dict[tuple[str, Compound], _Step] = field(default_factory=dict)
    around: int = 0
    """Number of open elements that it chooses."""


@dataclass(kw_only=True)
class _Open:
    """An element whose children are looked at."""

    children: Iterator[object]
    steps: Sequence[_Step] = ()
    """Steps that choose it and that others follow on."""
    last: Sequence[_Step] = ()
    """Steps that choose the child before."""
    elder: set[_Step] = field(default_factory=set)
    """Steps that choose any child before."""
    invisible: list[Tag] | None = None
    """Where to note what is visible again; None in what is visible."""


def page_styles(page: Tag) -> PageStyles:
    """Return the styles of a page, in time linear in it.

    An element is hidden by its own style, or by a rule for one class or one id; other rules only show what these
    hide, since scripts undo them when a reader opens a tab. So do rules for some screens only.
    """
    sheets = _Sheets()
    for text, media in _sheets_in(page):
        sheets.add(text, media)
    sheets.finish()
    walk = _Walk(sheets)
    walk.over(page)
    return PageStyles(styles=walk.styles, shown_within=walk.shown_within)


class _Walk:
    """A walk over the elements of a page, in their order, that tells the style of each."""

    def __init__(self, sheets: _Sheets) -> None:
        self.styles: dict[int, HtmlStyle] = {}
        self.shown_within: dict[int, list[Tag]] = {}
        self._sheets = sheets
        self._opened: list[_Open] = []

    def over(self, page: Tag) -> None:
        """Walk over a page."""
        from bs4.element import Tag  # noqa: PLC0415 - keeps the package's import fast

        self._opened.append(self._page(page))
        while self._opened:
            around = self._opened[-1]
            for node in around.children:
                if isinstance(node, Tag):
                    self._meet(node, around)
                    if self._opened[-1] is not around:
                        break
            else:
                for step in self._opened.pop().steps:
                    step.around -= 1

    def _page(self, page: Tag) -> _Open:
        """Return the page itself, as an element that ``html`` and ``body`` choose where it lacks their tags."""
        from bs4.element import Tag  # noqa: PLC0415 - keeps the package's import fast

        opened = _Open(children=iter(page.contents))
        names = {each.name for each in page.contents if isinstance(each, Tag)}
        for name in () if "html" in names else ("html",) if "body" in names else ("html", "body"):
            _, opened.steps = self._sheets.found(Tag(name=name), opened)
            for step in opened.steps:
                step.around += 1
        return opened

    def _meet(self, node: Tag, around: _Open) -> None:
        """Note the style of an element, and open it if there is anything to see in it."""
        rules, steps = self._sheets.found(node, around)
        around.last = steps
        around.elder.update(steps)
        invisible = around.invisible
        if rules or (node.attrs and ("style" in node.attrs or "baseline-shift" in node.attrs)):
            values = _values(node, rules)
            invisible = self._visibility(node, values, invisible)
            self.styles[id(node)] = style_of_values(values)
            if values.get("display") == "none" and invisible is around.invisible:
                return
        if node.contents and node.name not in HIDDEN:
            for step in steps:
                step.around += 1
            self._opened.append(_Open(children=iter(node.contents), steps=steps, invisible=invisible))

    def _visibility(self, node: Tag, values: dict[str, str], invisible: list[Tag] | None) -> list[Tag] | None:
        """Return where to note what is visible again in an element, given where it is noted around it.

        The values of the outermost invisible element then say that it is not displayed.
        """
        seen = values.get("visibility", "")
        if seen in _INHERITED or values.get("display") == "none":
            return invisible
        if seen not in _INVISIBLE:
            if invisible is not None:
                invisible.append(node)
            return None
        if invisible is not None:
            return invisible
        values["display"] = "none"
        return self.shown_within.setdefault(id(node), [])


_INVISIBLE = ("hidden", "collapse")
_INHERITED = ("", "inherit", "unset")


def _sheets_in(page: Tag) -> Iterator[tuple[str, str]]:
    """Yield the sheets of a page in order, each with its media."""
    from bs4.element import Tag  # noqa: PLC0415 - keeps the package's import fast

    waiting: list[object] = [page]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Tag):
            continue
        if node.name == "style":
            if attribute(node, "type").strip().lower() in ("", "text/css"):
                yield node.get_text(), attribute(node, "media")
        elif node.name not in ("noscript", "template"):
            waiting += reversed(node.contents)


class _Sheets:
    """The rules of all sheets of a page, found by what the last part of their selectors wants."""

    def __init__(self) -> None:
        self._rules: list[tuple[Selector, Sequence[Declaration], str, bool]] = []
        self._layers: dict[str, int] = {}
        self._first: dict[tuple[str, Compound], _Step] = {}
        self._steps: dict[str, list[_Step]] = {}
        self._shown: set[str] = set()
        """What elements have that are not hidden, since some of their rules are left out."""
        self._is_full = False

    def add(self, sheet: str, media: str) -> None:
        """Read a sheet."""
        for rule in () if self._is_full or media_apply(media) == "no" else sheet_rules(sheet, media):
            self._layers.setdefault(rule.layer, len(self._layers))
            for selector in read_selectors(rule.selectors):
                self._rules.append((selector, rule.declarations, rule.layer, rule.is_sure))
            if len(self._rules) > _MOST_RULES:
                self._is_full = True
                return

    def finish(self) -> None:
        """Make the rules ready to be found, once all sheets are read."""
        for order, (selector, declarations, layer, is_applied) in enumerate(self._rules):
            step = self._step_of(selector)
            if step is None:
                self._shown.add(selector.parts[-1][1].key())
                continue
            is_sure = is_applied and selector.is_sure
            rule = _Rule(
                declarations=declarations,
                specificity=selector.specificity,
                order=order,
                layer=self._layers[layer] if layer else _UNLAYERED,
                hides=is_sure and selector.is_name() and not self._is_full,
                is_sure=is_sure,
            )
            step.rules.append(rule)
        self._rules.clear()

    def _step_of(self, selector: Selector) -> _Step | None:
        """Return the last step of a selector; None if too many want the same as one of its steps."""
        found: _Step | None = None
        steps = self._first
        for beside, compound in selector.parts:
            step = steps.get((beside, compound))
            if step is None:
                alike = self._steps.setdefault(compound.key(), [])
                if len(alike) >= _MOST_ALIKE:
                    return None
                step = steps[beside, compound] = _Step(beside=beside, compound=compound, before=found)
                alike.append(step)
            found, steps = step, step.next
        return found

    def found(self, node: Tag, around: _Open) -> tuple[list[_Rule], list[_Step]]:
        """Return the rules that choose an element, and the steps that do so and that others follow on."""
        rules: list[_Rule] = []
        steps: list[_Step] = []
        if not self._steps:
            return rules, steps
        keys = ["*", node.name]
        classes = _NO_CLASSES
        if node.attrs:
            classes = frozenset(attribute(node, "class").split())
            keys += [f".{each}" for each in classes]
            keys.append(f"#{attribute(node, 'id')}")
            keys += [f"[{each}" for each in node.attrs]
        for key in keys:
            if key in self._shown:
                rules.append(_SHOWN)
            for step in self._steps.get(key, ()):
                if (step.before is None or _stands(step, around)) and step.compound.fits(
                    node.name, classes, node.attrs
                ):
                    rules += step.rules
                    if step.next:
                        steps.append(step)
        return rules, steps


def _stands(step: _Step, around: _Open) -> bool:
    """Return whether what a step wants around or before an element is there."""
    before = step.before
    if before is None:
        return True
    if step.beside == " ":
        return before.around > 0
    if step.beside == ">":
        return before in around.steps
    return before in (around.last if step.beside == "+" else around.elder)


def _values(node: Tag, rules: Sequence[_Rule]) -> dict[str, str]:
    """Return the values of properties that hold for an element; ``text-decoration`` has one name, the longer one."""
    values: dict[str, str] = {}
    ranks: dict[str, _Rank] = {}
    for name, value, rank in _declared(node, rules):
        if name not in ranks or rank >= ranks[name]:
            ranks[name], values[name] = rank, value
    if values.pop(_MAY_DISPLAY, "none") != "none" and values.get("display", "none") == "none":
        values["display"] = "inline"
    return values


def _declared(node: Tag, rules: Sequence[_Rule]) -> Iterator[tuple[str, str, _Rank]]:
    """Yield what is said of an element: a name, a value and its rank, the highest of which holds."""
    if "baseline-shift" in node.attrs:
        yield "baseline-shift", attribute(node, "baseline-shift").strip().lower(), (False, -1, (0, 0, 0), 0)
    for rule in rules:
        for each in rule.declarations:
            layer = -rule.layer if each.is_important else rule.layer
            for name in _names(each, rule):
                yield name, each.value, (each.is_important, layer, rule.specificity, rule.order)
    for number, each in enumerate(declarations_of(attribute(node, "style"))):
        for name in _names(each, None):
            yield name, each.value, (each.is_important, _OWN, (0, 0, 0), number)


_MAY_DISPLAY = "display on some screens"


def _names(declared: Declaration, rule: _Rule | None) -> Sequence[str]:
    """Return which values a declaration of a rule sets, or one of the element's own style; none for what is unsure."""
    name, value = declared.name, declared.value
    if value in ("revert", "revert-layer"):
        return ()
    if name == "display":
        if value == "none":
            return (name, _MAY_DISPLAY) if rule is None or rule.hides else ()
        return (name, _MAY_DISPLAY) if rule is None or rule.is_sure else (_MAY_DISPLAY,)
    if name == "visibility":
        is_set = rule is None or rule.hides or value not in _INVISIBLE
    else:  # many a list without marks has numbers of another kind
        is_set = rule is None or (rule.is_sure and not (name.startswith("list-style") and "none" in value.split()))
    return (_LONGER.get(name, name),) if is_set else ()


_LONGER = {"text-decoration": "text-decoration-line"}
