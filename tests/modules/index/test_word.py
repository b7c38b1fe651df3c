"""What a reader sees in a Word file is in its text, or is told as left out."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable

import pytest

from judgetree.modules.errors import LoadingError
from judgetree.modules.index.file_parsers import LoadLimits, parse_file
from judgetree.modules.index.parsers.parsed import ParsedFile
from tests.modules.index.word_files import CASES, SPACES, UNSEEN, Case, p, relations, run, word_file


def parsed(data: bytes) -> ParsedFile:
    return parse_file(".docx", data, LoadLimits())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_a_reader_sees_is_in_the_text_and_the_rest_is_told(case: Case) -> None:
    found = parsed(case.data())
    ((text, _),) = found.texts
    assert {sentence: text.count(sentence) for sentence in case.seen} == dict.fromkeys(case.seen, 1), text
    assert UNSEEN not in text
    assert found.left_out == case.left_out


@pytest.mark.parametrize("height", [8, 2, -2])
def test_smaller_text_that_is_moved_is_a_script(height: int) -> None:
    moved = run("2", f'<w:position w:val="{height}"/>')
    ((text, _),) = parsed(word_file(p(run("X") + moved + run(" is")))).texts
    assert text == ("X^2 is" if height > 0 else "X_2 is")


def test_a_strict_file_says_the_same() -> None:
    strict = "http://purl.oclc.org/ooxml"
    case = CASES["notes"]
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(case.data())) as usual, zipfile.ZipFile(packed, "w") as file:
        for name in usual.namelist():
            text = usual.read(name).decode()
            text = re.sub(r"http://schemas\.openxmlformats\.org/(\w+)/2006/", rf"{strict}/\1/", text)
            file.writestr(name, text.replace(f"{strict}/package", "http://schemas.openxmlformats.org/package/2006"))
    assert parsed(packed.getvalue()) == parsed(case.data())


def test_a_file_is_called_by_its_first_heading_without_the_number() -> None:
    ((_, metadata),) = parsed(CASES["numbers of lists"].data()).texts
    assert metadata == {"title": "Scope"}


def _zip(**parts: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, text in parts.items():
            file.writestr(name.replace("__", "/").replace("main", "word/document.xml"), text)
    return packed.getvalue()


_DOCTYPE = "<!-- " + "long " * 40_000 + '--><!DOCTYPE d [<!ENTITY a "b">]>'
_RELATIONS = relations(("r1", "officeDocument", "/word/document.xml"))
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "with a password": (lambda: OLE + "EncryptedPackage".encode("utf-16-le"), "it is protected by a password"),
    "of Word 97": (lambda: OLE, r"Word 97 to 2003 \(\.doc\); open it in Word and save it as \.docx"),
    "of RTF": (lambda: rb"{\rtf1 text}", "RTF file by its content"),
    "without parts": (lambda: _zip(a="b"), "it is no Word document: it has no main part"),
    "of Excel": (
        lambda: _zip(**{"_rels__.rels": _RELATIONS, "main": "<workbook/>"}),
        "it is no Word document: its main part has no body",
    ),
    "with entities": (
        lambda: _zip(**{"_rels__.rels": _RELATIONS, "main": _DOCTYPE + f"<w:document {SPACES}>&a;</w:document>"}),
        "its XML has a document type",
    ),
    "of comments": (
        lambda: word_file("", {"comments": "<w:comments><w:comment/></w:comments>"}),
        "no text, but 1 comment",
    ),
    "cut off": (lambda: word_file(p("words"))[:-30], "it cannot be read"),
    "of broken XML": (lambda: word_file("<w:p>"), r"it cannot be read \(ParseError"),
    "of a hidden bomb": (
        lambda: _zip(
            **{"_rels__.rels": _RELATIONS.replace("document.xml", "a.bin"), "word__a.bin": "<a/>" + " " * 64_000_000}
        ),
        "it unpacks to 64 MB of XML",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_is_not_read_says_why(kind: str) -> None:
    content, reason = REFUSED[kind]
    with pytest.raises(LoadingError, match=reason):
        parsed(content())


HUGE_LISTS = (
    '<w:numbering><w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="{start}"/>'
    '<w:numFmt w:val="{style}"/><w:lvlText w:val="%1."/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num></w:numbering>'
)


@pytest.mark.parametrize("start", ["999999999", "-5", "99999999999999999999", "x", "٣", "0"])
@pytest.mark.parametrize("style", ["upperRoman", "lowerLetter", "chineseCounting", "ordinal", "decimalEnclosedCircle"])
def test_a_list_that_begins_anywhere_has_short_numbers(style: str, start: str) -> None:
    body = p("item", '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>')
    ((text, _),) = parsed(word_file(body, {"numbering": HUGE_LISTS.format(style=style, start=start)})).texts
    assert len(text) < 20


ITSELF = p("<w:r><w:footnoteReference w:id='2'/></w:r>" + run("words"))
CIRCLES = {
    "styles": word_file(
        p(run("words", '<w:rStyle w:val="a"/>'), '<w:pStyle w:val="a"/>'),
        {"styles": '<w:styles><w:style w:styleId="a"><w:basedOn w:val="a"/></w:style></w:styles>'},
    ),
    "notes": word_file(ITSELF, {"footnotes": f"<w:footnotes><w:footnote w:id='2'>{ITSELF}</w:footnote></w:footnotes>"}),
}


@pytest.mark.parametrize("kind", CIRCLES)
def test_what_refers_to_itself_is_read_once(kind: str) -> None:
    ((text, _),) = parsed(CIRCLES[kind]).texts
    assert text in ("words", "[1]words\n\n[1] [1]words")
