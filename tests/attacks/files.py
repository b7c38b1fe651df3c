"""Forty files that try to stop, hang or fill the indexing of their folder."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

DEEP = 50_000
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/d.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.'
    'document.main+xml"/></Types>'
)
RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="d.xml"/>'
    "</Relationships>"
)


def word(document: bytes) -> bytes:
    """A Word file whose document part is given."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as parts:
        parts.writestr("[Content_Types].xml", TYPES)
        parts.writestr("_rels/.rels", RELATIONS)
        parts.writestr("d.xml", document)
    return data.getvalue()


def paragraphs(content: bytes) -> bytes:
    """A Word document part with that inside its body."""
    return f'<w:document xmlns:w="{WORD}"><w:body>'.encode() + content + b"</w:body></w:document>"


def lying_zip() -> bytes:
    """A Word file whose 100 MB of XML are declared as 10 bytes."""
    data = bytearray(word(paragraphs(b"<w:p/>" * 17_000_000)))
    entry = data.rindex(b"PK\x01\x02")
    struct.pack_into("<L", data, entry + 24, 10)
    return bytes(data)


def pdf(*objects: str, trailer: str = "/Root 1 0 R") -> bytes:
    """A PDF of these objects, numbered from 1."""
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1")
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} {trailer} >>\nstartxref\n{len(body)}\n"
    return body + end.encode() + b"%%EOF\n"


CATALOG = "<< /Type /Catalog /Pages 2 0 R >>"
PAGE = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>"


def pdf_bomb() -> bytes:
    """One page whose content is 400 MB of spaces, deflated."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * 1_000_000) for _ in range(400)) + packer.flush()
    stream = f"<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n{packed.decode('latin-1')}\nendstream"
    return pdf(CATALOG, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", PAGE, stream)


CONTENTS: Mapping[str, Callable[[], bytes]] = {
    "empty.txt": lambda: b"",
    "blank.md": lambda: b" \n\t\r\n",
    "latin.txt": lambda: "Grüße".encode("latin-1"),
    "half-utf16.txt": lambda: b"\xff\xfea",
    "nul.txt": lambda: b"\x00" * 1000,
    "hashes.md": lambda: b"# " + b"#" * 200_000 + b"x\n",
    "blanks.md": lambda: b"# " + b" " * 200_000 + b"x\n",
    "nested.html": lambda: b"<div>" * DEEP + b"<script>x",
    "nested-inline.html": lambda: b"<b><i>" * DEEP,
    "comments.html": lambda: b"<!--" * 100_000,
    "declarations.html": lambda: b"<![" * 100_000,
    "attributes.html": lambda: b"<p " + b"a=1 " * 100_000 + b">",
    "entities.docx": lambda: word(
        b'<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">'
        + b"".join(b'<!ENTITY %c "%s">' % (97 + n, b"&%c;" % (96 + n) * 10) for n in range(1, 10))
        + b"]>"
        + paragraphs(b"<w:p><w:r><w:t>&j;</w:t></w:r></w:p>")
    ),
    "bomb.docx": lambda: word(paragraphs(b"<w:p/>" * 17_000_000)),
    "lying.docx": lying_zip,
    "nested.docx": lambda: word(paragraphs(b"<w:tbl><w:tr><w:tc>" * DEEP)),
    "no-zip.docx": lambda: b"PK\x03\x04" + b"\x00" * 100,
    "cut.pdf": lambda: b"%PDF-1.4\nrubbish",
    "no-pages.pdf": lambda: pdf(CATALOG, "<< /Type /Pages /Kids [] /Count 0 >>"),
    "own-parent.pdf": lambda: pdf(CATALOG, "<< /Type /Pages /Kids [2 0 R] /Count 1 >>"),
    "own-reference.pdf": lambda: pdf("1 0 R", "2 0 R"),
    "nested.pdf": lambda: pdf(CATALOG, "<< /Type /Pages /Kids " + "[" * DEEP + "]" * DEEP + " /Count 1 >>"),
    "locked.pdf": lambda: pdf(
        CATALOG,
        "<< /Type /Pages /Kids [] /Count 0 >>",
        f"<< /Filter /Standard /V 1 /R 2 /O <{'ab' * 32}> /U <{'cd' * 32}> /P -1 >>",
        trailer="/Root 1 0 R /Encrypt 3 0 R /ID [<00> <00>]",
    ),
    "bomb.pdf": pdf_bomb,
    "cut.json": lambda: b"{",
    "nested.json": lambda: b"[" * DEEP + b"]" * DEEP,
    "nested-metadata.json": lambda: b'{"text": "x", "a": ' + b"[" * 500 + b"]" * 500 + b"}",
    "integer.json": lambda: b'{"text": "x", "number": 18446744073709551616}',
    "digits.json": lambda: b'{"text": "x", "number": ' + b"9" * 100_000 + b"}",
    "metadata.json": lambda: json.dumps({"text": "x", "note": "y" * 100_000}).encode(),
    "list.json": lambda: b"[1]",
    "half.jsonl": lambda: b'{"text": "fine"}\n{"text": ',
    "objects.json": lambda: b"[" + b"[]," * 2_000_000 + b"[]]",
    "field.csv": lambda: b'a\n"' + b"x" * 200_000 + b'"\n',
    "quote.csv": lambda: b'a,b\n1,"never closed',
    "wide.csv": lambda: b"a\n" + b"," * 1000 + b"\n",
    "commas.csv": lambda: b"," * 8_000_000 + b"\n" + b"," * 8_000_001,
    "header.csv": lambda: b"h" * 100_000 + b"\n" + b"1\n" * 10_000,
}
"""Name to content."""
READABLE = frozenset({"hashes.md", "blanks.md", "field.csv"})
"""Those that hold a text: only a careless pattern hangs at them, and a cell may have 16 million characters."""


def write_special(folder: Path) -> list[str]:
    """Things that are no files, and names that are no text; their names as they are shown come back."""
    os.mkfifo(folder / "fifo.txt")
    (folder / "device.txt").symlink_to("/dev/zero")
    (folder / "circle.txt").symlink_to("circle.txt")
    (folder / "nowhere.txt").symlink_to("missing.txt")
    (folder / "outside.txt").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(folder)  # an address of a socket has 100 characters at most
        try:
            bound.bind("socket.txt")
        finally:
            os.chdir(here)
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("x")
    return ["caf\\xe9.txt", "circle.txt", "device.txt", "fifo.txt", "nowhere.txt", "outside.txt", "socket.txt"]
