"""One story of a Word document (its body, a header, a note) as blocks of text: paragraphs, tables, text boxes.

Elements that are not known are entered, so that text in a wrapper which Word adds one day is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from ....reading.scripts import Script, with_marks
from .drawings import drawing
from .equations import linear
from .fields import Fields, form_field, without_result
from .notes import NoteKind, Notes
from .numbering import Numbering
from .package import M, W, is_on, number, value
from .rows import MOST_REPEATED, WordCell, row_text
from .styles import Style, Styles, TextLook, look_of
from .symbols import UNKNOWN, is_private, readable, symbol

_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_STRUCK = "~~"
_MOST_COLUMNS = 63
_NAMES = (
    "pPr rPr tblPr tblPrEx tblGrid trPr tcPr sdtPr sdtEndPr sectPr customXmlPr smartTagPr rubyPr numPr "
    "moveFrom delText delInstrText fldData ffData footnoteRef endnoteRef annotationRef softHyphen"
)
_SKIPPED = frozenset(f"{W}{name}" for name in _NAMES.split())


@dataclass(kw_only=True)
class WordDocument:
    """What the stories of a document share."""

    styles: Styles
    numbering: Numbering
    notes: Notes
    left_out: Counter[str] = field(default_factory=Counter)


class Story:
    """The text of one story, once ``read`` has walked through its elements."""

    def __init__(self, document: WordDocument) -> None:
        self.blocks: list[str] = []
        self.heading = ""
        """The first paragraph in a style of titles or headings, without its number."""
        self.sections: list[tuple[int, Element]] = []
        """Number of the blocks before the end of each section, with its properties."""
        self._document = document
        self._pieces: list[tuple[str, Script]] = []
        self._boxes: list[str] = []
        self._notes: list[str] = []
        self._fields = Fields()
        self._look = TextLook()
        self._style = Style()
        self._depth = 0
        self._after_hidden = False

    def read(self, root: Element) -> Story:
        """Read all of an element; return this story."""
        self._walk(root)
        self._end_block()
        if self._fields.in_instruction:
            self._document.left_out["unfinished field"] += 1
        return self

    def _walk(self, parent: Element) -> None:
        for child in parent:
            if child.tag in _SKIPPED:
                continue
            handle = _HANDLERS.get(child.tag)
            if handle is None:
                self._walk(child)
            else:
                handle(self, child)

    def _say(self, text: str, script: Script = "") -> None:
        if self._fields.in_instruction or not text:
            return
        if self._look.hidden:
            self._count_hidden()
            return
        self._after_hidden = False
        self._pieces.append((f"{_STRUCK}{text}{_STRUCK}" if self._look.struck and text.strip() else text, script))

    def _count_hidden(self) -> None:
        if not self._after_hidden:
            self._document.left_out["hidden passage"] += 1
        self._after_hidden = True

    def _leave_out(self, kind: str) -> None:
        if kind and not self._look.hidden:
            self._document.left_out[kind] += 1

    # --- blocks ---

    def _paragraph(self, element: Element) -> None:
        properties = element.find(f"{W}pPr")
        outer, self._style = self._style, self._document.styles.of_paragraph("")
        joins_next, label = False, ""
        if properties is not None:
            self._style = self._document.styles.of_paragraph(value(properties.find(f"{W}pStyle")))
            joins_next = _joins_next(properties)
        if not joins_next:
            label = self._label(properties)
        self._after_hidden = False
        self._walk(element)
        is_heading, self._style = self._style.is_heading, outer
        if not joins_next:
            self._end_block(label, is_heading=is_heading)
        section = None if properties is None else properties.find(f"{W}sectPr")
        if section is not None:
            self.sections.append((len(self.blocks), section))

    def _end_block(self, label: str = "", *, is_heading: bool = False) -> None:
        text = with_marks(self._pieces).replace(_STRUCK * 2, "")  # from one run to the next
        self._pieces.clear()
        if text.strip():
            if is_heading and not self.heading:
                self.heading = " ".join(text.split())
            self.blocks.append(f"{label} {text}" if label else text)
        self.blocks += self._boxes
        self._boxes.clear()
        if not self._depth:
            self.blocks += self._notes
            self._notes.clear()

    def _label(self, properties: Element | None) -> str:
        list_id, level = self._style.numbered
        if properties is not None:
            listed = properties.find(f"{W}numPr")
            if listed is not None:
                list_id = value(listed.find(f"{W}numId")) or list_id
                level = value(listed.find(f"{W}ilvl")) or level
            if is_on(properties.find(f"{W}rPr/{W}vanish")):
                return ""
        if not list_id:
            return ""
        label = self._document.numbering.label(list_id, level)
        if label is None:
            self._leave_out("list number")
        return label or ""

    def _inner_blocks(self, element: Element, *, own_fields: bool = False) -> list[str]:
        """Return the blocks of a cell or text box, which stand apart from those around it."""
        outer = self.blocks, self._pieces, self._boxes, self._fields, self._look
        self.blocks, self._pieces, self._boxes = [], [], []
        self._look = TextLook()
        if own_fields:
            self._fields = Fields()
        self._depth += 1
        self._walk(element)
        self._end_block()
        self._depth -= 1
        inner = self.blocks
        fields = self._fields
        self.blocks, self._pieces, self._boxes, self._fields, self._look = outer
        if not own_fields:
            self._fields = fields
        return inner

    def _table(self, element: Element) -> None:
        if self._pieces:  # of a paragraph that would go on after the table
            self._end_block()
        rows: list[list[WordCell]] = []
        above: dict[int, str] = {}
        for row in _within(element, f"{W}tr"):
            properties = row.find(f"{W}trPr")
            if properties is not None and properties.find(f"{W}del") is not None:
                self._leave_out("tracked deletion")
            elif properties is not None and is_on(properties.find(f"{W}hidden")):
                self._leave_out("hidden passage")
            else:
                rows.append(list(self._cells(row, above)))
        starts = sorted({cell.start for row in rows for cell in row})
        if text := "\n".join(filter(None, (row_text(row, starts) for row in rows))):
            self.blocks.append(text)
        if not self._depth:
            self.blocks += self._notes
            self._notes.clear()

    def _cells(self, row: Element, above: dict[int, str]) -> Iterator[WordCell]:
        """Yield the cells of a row; ``above`` has the texts that reach down from the rows above, by column."""
        column = min(number(value(row.find(f"{W}trPr/{W}gridBefore"))), _MOST_COLUMNS)
        before = ""
        for cell in _within(row, f"{W}tc"):
            properties = cell.find(f"{W}tcPr")
            down = across = None
            span = 1
            if properties is not None:
                if properties.find(f"{W}cellDel") is not None:
                    self._leave_out("tracked deletion")
                    continue
                down, across = properties.find(f"{W}vMerge"), properties.find(f"{W}hMerge")
                span = min(max(1, number(value(properties.find(f"{W}gridSpan")), 1)), _MOST_COLUMNS)
            own = "\n".join(self._inner_blocks(cell))
            text = own
            if not own.strip() and across is not None and value(across) != "restart":
                text = before
            elif not own.strip() and down is not None and value(down) != "restart":
                text = above.get(column, "")
            before = above[column] = text if len(text) <= MOST_REPEATED else ""
            is_nested = next(cell.iter(f"{W}tbl"), None) is not None
            yield WordCell(start=column, end=column + span, text=text, own=own, is_nested=is_nested)
            column += span

    # --- what stands in a line ---

    def _run(self, element: Element) -> None:
        properties = element.find(f"{W}rPr")
        outer, look = self._look, look_of(properties)
        named = None if properties is None else properties.find(f"{W}rStyle")
        if named is not None:
            look = look.over(self._document.styles.of(value(named)).look)
        self._look = look.over(self._style.look)
        self._walk(element)
        self._look = outer

    def _text(self, element: Element) -> None:
        text = element.text or ""
        if is_private(text):
            text = readable(text, self._look.font or "")
            if UNKNOWN in text:
                self._leave_out("symbol")
        self._say(text.replace("\n", " ").replace("\u00ad", ""), self._look.script or "")

    def _symbol(self, element: Element) -> None:
        code = value(element, "char")
        known = len(code) <= 6 and all(each in "0123456789abcdefABCDEF" for each in code)
        text = symbol(int(code, 16) if code and known else 0, value(element, "font"))
        if text == UNKNOWN:
            self._leave_out("symbol")
        self._say(text, self._look.script or "")

    def _ruby(self, element: Element) -> None:
        for base in element.findall(f"{W}rubyBase"):
            self._walk(base)
        self._say("(")
        for above in element.findall(f"{W}rt"):
            self._walk(above)
        self._say(")")

    def _field(self, element: Element) -> None:
        kind = value(element, "fldCharType")
        if kind == "begin":
            self._say(form_field(element))
        self._show(*self._fields.step(kind))

    def _simple_field(self, element: Element) -> None:
        if len(element):
            self._walk(element)
        else:
            self._show(*without_result(value(element, "instr")))

    def _show(self, text: str, missing: str) -> None:
        self._say(text)
        self._leave_out(missing)

    def _deletion(self, element: Element) -> None:
        if any((each.text or "").strip() or each.tag == f"{W}drawing" for each in element.iter()):
            self._leave_out("tracked deletion")

    def _note(self, element: Element) -> None:
        if self._look.hidden or self._fields.in_instruction:
            return
        kind: NoteKind = "endnote" if element.tag == f"{W}endnoteReference" else "footnote"
        label, root = self._document.notes.refer(kind, value(element, "id"))
        own_mark = value(element, "customMarkFollows") in ("1", "true", "on")
        if not own_mark:
            apart = " " if self._pieces and not self._pieces[-1][0][-1:].isspace() else ""
            self._say(f"{apart}[{label}]")
        if root is not None:
            story = Story(self._document).read(root)
            text = "\n".join(story.blocks).strip()
            self._notes.append(text if own_mark else f"[{label}] {text}")

    def _drawing(self, element: Element) -> None:
        if self._look.hidden or self._fields.in_instruction:
            self._say("drawing")  # counted as hidden
            return
        found = drawing(element)
        self._boxes += [text for text in found.texts if text.strip("[] ")]
        self._document.left_out.update(found.left_out)
        self._walk(element)

    def _text_box(self, element: Element) -> None:
        if self._look.hidden or self._fields.in_instruction:
            self._say("box")  # counted as hidden
            return
        self._boxes += self._inner_blocks(element, own_fields=True)

    def _drawn_paragraph(self, element: Element) -> None:
        text = "".join(each.text or "" for each in element.iter(f"{_A}t"))
        if text.strip():
            self._boxes.append(text)

    def _alternatives(self, element: Element) -> None:
        """Read the first choice; another one says the same for programs that do not know the first."""
        before = self._amount()
        for each in element:
            self._walk(each)
            if self._amount() != before:
                return

    def _amount(self) -> tuple[int, int, int, int]:
        return len(self._pieces), len(self._boxes), len(self.blocks), self._document.left_out.total()


def _within(element: Element, tag: str) -> Iterator[Element]:
    """Yield the rows of a table or the cells of a row, in order, also those in content controls and the like."""
    waiting = list(reversed(element))
    while waiting:
        each = waiting.pop()
        if each.tag == tag:
            yield each
        elif each.tag not in _SKIPPED and each.tag not in (f"{W}tbl", f"{W}tr", f"{W}tc", f"{W}del"):
            waiting.extend(reversed(each))


def _joins_next(properties: Element) -> bool:
    """Return whether the paragraph goes on in the next one: its end is deleted, or it is a large first letter."""
    frame = properties.find(f"{W}framePr")
    mark = properties.find(f"{W}rPr")
    is_deleted = mark is not None and (mark.find(f"{W}del") is not None or mark.find(f"{W}moveFrom") is not None)
    return is_deleted or value(frame, "dropCap") in ("drop", "margin")


_HANDLERS: Mapping[str, Callable[[Story, Element], None]] = {
    f"{W}p": Story._paragraph,
    f"{W}tbl": Story._table,
    f"{W}r": Story._run,
    f"{W}t": Story._text,
    f"{W}tab": lambda story, _: story._say("\t"),
    f"{W}ptab": lambda story, _: story._say("\t"),
    f"{W}br": lambda story, _: story._say("\n"),
    f"{W}cr": lambda story, _: story._say("\n"),
    f"{W}noBreakHyphen": lambda story, _: story._say("-"),
    f"{W}sym": Story._symbol,
    f"{W}ruby": Story._ruby,
    f"{W}fldChar": Story._field,
    f"{W}instrText": lambda story, element: story._fields.instruct(element.text or ""),
    f"{W}fldSimple": Story._simple_field,
    f"{W}del": Story._deletion,
    f"{W}footnoteReference": Story._note,
    f"{W}endnoteReference": Story._note,
    f"{W}drawing": Story._drawing,
    f"{W}pict": Story._drawing,
    f"{W}object": Story._drawing,
    f"{W}txbxContent": Story._text_box,
    f"{W}altChunk": lambda story, _: story._leave_out("embedded document"),
    f"{W}subDoc": lambda story, _: story._leave_out("embedded document"),
    f"{_A}p": Story._drawn_paragraph,
    f"{M}oMath": lambda story, element: story._say(linear(element)),
    f"{_MC}AlternateContent": Story._alternatives,
}
