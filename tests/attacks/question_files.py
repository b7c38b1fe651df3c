"""Small files of questions that unfold into much: cells, rows, columns, depth, entities, unpacked bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Mapping

from openpyxl.utils import get_column_letter

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def workbook(rows: bytes, *, dimension: str = "A1", shared: bytes = b"", sheets: int = 1, head: bytes = b"") -> bytes:
    """An Excel file whose first sheet has these rows; further sheets are empty."""
    data = io.BytesIO()
    numbers = range(1, sheets + 1)
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as parts:
        overrides = "".join(
            f'<Override PartName="/xl/worksheets/s{n}.xml" ContentType="{_KIND}.worksheet+xml"/>' for n in numbers
        )
        parts.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.'
            f'openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="{_KIND}.'
            f'sheet.main+xml"/><Override PartName="/xl/sharedStrings.xml" ContentType="{_KIND}.sharedStrings+xml"/>'
            f"{overrides}</Types>",
        )
        parts.writestr("_rels/.rels", _relations({"r": ("officeDocument", "xl/workbook.xml")}))
        listed = "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
        parts.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{_RELATIONS}"><sheets>{listed}</sheets></workbook>'
        )
        targets = {f"r{n}": ("worksheet", f"worksheets/s{n}.xml") for n in numbers}
        parts.writestr(
            "xl/_rels/workbook.xml.rels", _relations({**targets, "strings": ("sharedStrings", "sharedStrings.xml")})
        )
        parts.writestr("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">'.encode() + shared + b"</sst>")
        for n in numbers:
            own = rows if n == 1 else b""
            opening = f'<worksheet xmlns="{MAIN}"><dimension ref="{dimension}"/><sheetData>'.encode()
            parts.writestr(f"xl/worksheets/s{n}.xml", head + opening + own + b"</sheetData></worksheet>")
    return data.getvalue()


def _relations(targets: Mapping[str, tuple[str, str]]) -> str:
    inner = "".join(
        f'<Relationship Id="{name}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{inner}</Relationships>'


def _text(place: str, text: str = "question") -> bytes:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'.encode()


HEAD = b'<row r="1">' + _text("A1") + b"</row>"
ASKED = b'<row r="2">' + _text("A2", "Who wrote it?") + b"</row>"


def _wide(rows: int) -> bytes:
    return b"".join(b'<row r="%d">' % n + _text(f"XFD{n}", "x") + b"</row>" for n in range(2, rows + 2))


def merged(refs: Iterable[str]) -> bytes:
    """Merged cells below the rows of a sheet."""
    inner = b"".join(f'<mergeCell ref="{ref}"/>'.encode() for ref in refs)
    return b"</sheetData><mergeCells>" + inner + b"</mergeCells><sheetData>"


def _columns() -> list[str]:
    return [get_column_letter(number) for number in range(1, 16_385)]


def _merged_columns(rows: int) -> bytes:
    """Columns that are merged down to the last row, and rows with a text in the last column."""
    filled = b'<row r="2">' + b"".join(_text(f"{name}2", "x") for name in _columns()) + b"</row>"
    own = b"".join(b'<row r="%d">' % n + _text(f"XFD{n}", "x") + b"</row>" for n in range(3, rows + 3))
    return filled + own + merged(f"{name}2:{name}1048576" for name in _columns()[:-1])


def nested_zip() -> bytes:
    """An archive in an archive in place of the sheet."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/workbook.xml", workbook(HEAD))
    return data.getvalue()


ENTITIES = (
    b'<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(b'<!ENTITY %c "%s">' % (97 + n, b"&%c;" % (96 + n) * 10) for n in range(1, 10))
    + b"]>"
)

CONTENTS: Mapping[str, Callable[[], bytes]] = {
    "wide-rows.xlsx": lambda: workbook(HEAD + _wide(30_000)),
    "last-rows.xlsx": lambda: workbook(HEAD + b'<row r="2000000000">' + _text("A2000000000", "x") + b"</row>"),
    "unpacks.xlsx": lambda: workbook(HEAD + b" " * 200_000_000),
    "shared-strings.xlsx": lambda: workbook(HEAD, shared=b"<si><t>" + b"a" * 120_000_000 + b"</t></si>"),
    "many-strings.xlsx": lambda: workbook(HEAD, shared=b"<si><t>a</t></si>" * 12_000_000),
    "cells.xlsx": lambda: workbook(HEAD + b"<row>" + b"<c/>" * 24_000_000 + b"</row>"),
    "sheets.xlsx": lambda: workbook(HEAD, sheets=6_000),
    "merged.xlsx": lambda: workbook(HEAD + merged(f"A{n}:B{n}" for n in range(2, 300_000))),
    "merged-columns.xlsx": lambda: workbook(HEAD + _merged_columns(1_300)),
    "merged-nowhere.xlsx": lambda: workbook(HEAD + merged(["nowhere"])),
    "entities.xlsx": lambda: workbook(
        b"<row>" + b'<c r="A1" t="inlineStr"><is><t>&j;</t></is></c>' + b"</row>", head=ENTITIES
    ),
    "nested-xml.xlsx": lambda: workbook(b"<row>" * 2_000_000),
    "nested.xlsx": nested_zip,
    "columns.csv": lambda: b"question" + b"," * 25_000_000 + b"\nWho?\n",
    "commas.tsv": lambda: b"question\n" + b"\t" * 25_000_000 + b"x\n",
    "field.csv": lambda: b'question\n"' + b"x" * 17_000_000 + b'"\n',
    "rows.csv": lambda: b"question\n" + b"a\n" * 1_100_000,
    "objects.json": lambda: b"[" + b"[]," * 10_000_000 + b"[]]",
    "line.jsonl": lambda: b'{"question": "' + b"x" * 5_000_000,
    "depth.jsonl": lambda: b'{"question": "Who?", "answer": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "digits.json": lambda: b'[{"question": "Who?", "id": ' + b"9" * 100_000 + b"}]",
}
"""Name to content; none of them is a file of questions."""
GOOD: Mapping[str, Callable[[], bytes]] = {
    "whole-sheet.xlsx": lambda: workbook(HEAD + ASKED, dimension="A1:XFD1048576"),
    "sparse.xlsx": lambda: workbook(HEAD + ASKED + b'<row r="1048576"><c r="A1048576"/></row>'),
    "sheets.xlsx": lambda: workbook(HEAD + ASKED, sheets=50),
    "merged.xlsx": lambda: workbook(
        HEAD + ASKED + b'<row r="1048576"/>' + merged(f"{name}2:{name}1048576" for name in _columns())
    ),
    "hidden.xlsx": lambda: workbook(HEAD + ASKED + b'<row r="3" hidden="1"/>' * 200_000),
    "blank-lines.csv": lambda: b"question\n" + b",\n" * 100_000 + b"Who wrote it?\n",
}
"""Files that only look large: each asks "Who wrote it?"."""
