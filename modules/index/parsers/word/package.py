"""The parts of a Word file: a zip file of XML with relations between them, read within limits."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from ....errors import LoadingError

MAX_XML_BYTES = 64_000_000
"""Most bytes of the XML that a file unpacks to."""
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_STRICT = (
    (b"http://purl.oclc.org/ooxml/wordprocessingml/main", W),
    (b"http://purl.oclc.org/ooxml/officeDocument/relationships", R),
    (b"http://purl.oclc.org/ooxml/officeDocument/math", M),
    (b"http://purl.oclc.org/ooxml/drawingml/", "{http://schemas.openxmlformats.org/drawingml/2006/}"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PROLOG_STEP = 65_536


def value(element: Element | None, name: str = "val") -> str:
    """Return an attribute in the namespace of Word; "" where it or the element is missing."""
    return "" if element is None else element.get(W + name, "")


def number(text: str, default: int = 0) -> int:
    """Return a whole number of up to nine digits; the default for any other text."""
    digits = text[1:] if text.startswith("-") else text
    return int(text) if len(digits) < 10 and digits.isascii() and digits.isdigit() else default


def is_on(element: Element | None) -> bool:
    """Return whether a property is there and not switched off."""
    return element is not None and value(element) not in ("0", "false", "off")


@dataclass(frozen=True, kw_only=True)
class Relation:
    """What a part refers to: another part, or an address outside."""

    kind: str
    """Last word of its type, such as "footnotes"."""
    target: str
    """Name of the part, in lower case; "" for an address outside."""


class WordPackage:
    """The parts of a Word file by name.

    Raises:
        LoadingError: It is no zip file that a Word document can be.
    """

    def __init__(self, data: bytes) -> None:
        if data.startswith(_OLE):
            locked = "EncryptedPackage".encode("utf-16-le") in data
            old = "it is in the format of Word 97 to 2003 (.doc); open it in Word and save it as .docx"
            raise LoadingError("it is protected by a password" if locked else old)
        if data.startswith(b"{\\rtf"):
            raise LoadingError("it is an RTF file by its content; open it in Word and save it as .docx")
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self._parts = {each.filename.lower().lstrip("/"): each for each in self._zip.infolist()}
        self._check_size(sum(each.file_size for name, each in self._parts.items() if name.endswith((".xml", ".rels"))))
        self._unpacked = 0

    @cached_property
    def main(self) -> str:
        """Name of the part with the text.

        Raises:
            LoadingError: There is none.
        """
        found = [each.target for each in self.relations("").values() if each.kind == "officeDocument"]
        if not found or found[0] not in self._parts:
            raise LoadingError("it is no Word document: it has no main part")
        return found[0]

    def has(self, name: str) -> bool:
        """Return whether a part is there."""
        return name in self._parts

    def related(self, kind: str) -> Iterator[Element]:
        """Yield the parts of a kind to which the main part refers, such as "styles"; missing ones are left out."""
        for each in self.relations(self.main).values():
            if each.kind == kind and each.target in self._parts:
                yield self.xml(each.target)

    def relations(self, part: str) -> dict[str, Relation]:
        """Return what a part refers to by id; ``""`` stands for the file as a whole."""
        folder, name = posixpath.split(part)
        listing = posixpath.join(folder, "_rels", f"{name}.rels")
        if listing not in self._parts:
            return {}
        return {each.get("Id", ""): _relation(each, folder) for each in self.xml(listing)}

    def xml(self, name: str) -> Element:
        """Return a part's root element.

        Raises:
            LoadingError: The file unpacks to too much, or the part has a document type, which could hold entities.
            ElementTree.ParseError: It is no XML.
        """
        part = self._parts[name]
        self._unpacked += part.file_size  # zipfile unpacks no more than this
        self._check_size(self._unpacked)
        data = self._zip.read(part)
        for strict, usual in _STRICT:
            data = data.replace(strict, usual.strip("{}").encode())
        _check_no_document_type(data)
        return ElementTree.fromstring(data)

    @staticmethod
    def _check_size(size: int) -> None:
        if size > MAX_XML_BYTES:
            raise LoadingError(f"it unpacks to {size / 1e6:.0f} MB of XML; allowed are {MAX_XML_BYTES / 1e6:.0f} MB")


def _relation(element: Element, folder: str) -> Relation:
    kind = element.get("Type", "").rsplit("/", 1)[-1]
    if element.get("TargetMode") == "External":
        return Relation(kind=kind, target="")
    target = posixpath.normpath(posixpath.join("/", folder, element.get("Target", "")))
    return Relation(kind=kind, target=target.lower().lstrip("/"))


class _PrologIsOver(Exception):
    pass


def _check_no_document_type(data: bytes) -> None:
    """Refuse XML with a document type, of which only the part before the first element is read."""

    def refuse(*_: object) -> None:
        raise LoadingError("its XML has a document type, which no Word file has")

    def stop(*_: object) -> None:
        raise _PrologIsOver

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    try:
        for start in range(0, len(data), _PROLOG_STEP):
            parser.Parse(data[start : start + _PROLOG_STEP])
    except _PrologIsOver:
        return
