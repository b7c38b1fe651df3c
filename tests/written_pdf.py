"""PDF files written object by object, without a library, for tests of what reads them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

HELVETICA = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def shown(x: float, y: float, text: str, *, size: float = 10, turn: tuple[int, int] = (1, 0)) -> str:
    """Operators that show a text; ``turn`` is the cosine and sine of its angle."""
    cos, sin = turn
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /F1 {size} Tf {cos} {sin} {-sin} {cos} {x} {y} Tm ({escaped}) Tj ET\n"


@dataclass(frozen=True, kw_only=True)
class WrittenPage:
    """A page of 600 by 800 points."""

    content: str = ""
    entries: str = ""
    """Further entries of its dictionary."""
    annotations: Sequence[str] = ()
    """Dictionaries."""
    image: bool = False
    """True for a grey picture over all of the page."""
    objects: Sequence[str] = field(default=())
    form: str = ""
    """What is drawn by the operator ``/X1 Do``."""
    form_entries: str = ""
    """Further entries of its dictionary."""


def written_pdf(
    *pages: WrittenPage,
    catalog: str = "",
    trailer: str = "",
    font: str = HELVETICA,
    letters: Mapping[str, str] | None = None,
) -> bytes:
    """Return the bytes of a file with these pages; ``letters`` are what characters of their contents stand for."""
    objects: list[bytes] = [f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode("latin-1"), b"", font.encode()]
    kids: list[int] = []

    def add(content: bytes) -> int:
        objects.append(content)
        return len(objects)

    def stream(data: bytes, entries: str = "") -> int:
        packed = zlib.compress(data)
        head = f"<< /Length {len(packed)} /Filter /FlateDecode {entries} >>\nstream\n".encode()
        return add(head + packed + b"\nendstream")

    if letters:
        pairs = "".join(f"<{ord(char):02X}> <{ord(letter):04X}>\n" for char, letter in letters.items())
        codes = f"1 begincodespacerange <00> <FF> endcodespacerange {len(letters)} beginbfchar\n{pairs}endbfchar"
        named = stream(f"/CIDInit /ProcSet findresource begin begincmap {codes} endcmap end".encode())
        objects[2] = font.replace(">>", f"/ToUnicode {named} 0 R >>").encode()
    for page in pages:
        content, drawn = page.content, ""
        if page.image:
            entries = "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8"
            picture = stream(b"\x80", entries)
            drawn = f"/I1 {picture} 0 R"
            content = f"q 600 0 0 800 0 0 cm /I1 Do Q\n{content}"
        if page.form:
            entries = f"/Type /XObject /Subtype /Form /BBox [-1000 -1000 1000 1000] {page.form_entries}"
            drawn += f" /X1 {stream(page.form.encode('cp1252'), entries)} 0 R"
        resources = f"/Font << /F1 3 0 R >> /XObject << {drawn} >> /ExtGState << /Clear << /CA 0 /ca 0 >> >>"
        annotations = " ".join(f"{add(each.encode('latin-1'))} 0 R" for each in page.annotations)
        text = stream(content.encode("cp1252"))
        kids.append(
            add(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {text} 0 R /Annots [{annotations}] "
                f"/Resources << {resources} >> {page.entries} >>".encode()
            )
        )
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    objects[1] = f"<< /Type /Pages /Kids [{listed}] /Count {len(kids)} >>".encode()
    body, offsets = b"%PDF-1.7\n", []
    for number, each in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n" % number + each + b"\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\n"
        f"startxref\n{len(body)}\n%%EOF\n"
    )
    return body + end.encode("latin-1")
