"""Texts of a workbook as cells show them: parts that are raised, lowered or struck through, and escaped characters."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from xml.parsers import expat
from xml.sax.saxutils import escape

from ..errors import LoadingError
from .scripts import Script, with_marks

_SHARED, _SHEETS = "sharedstrings.xml", "xl/worksheets/"
_FORMATS = (b"vertAlign", b"strike")
_SCRIPTS: Mapping[str, Script] = {"superscript": "^", "subscript": "_"}
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_WRITTEN = "\t\n\r"


def without_escapes(text: str) -> str:
    r"""Return the text of a cell with the characters that workbooks write in hexadecimal (ST_Xstring of ECMA-376).

    Lines end with a line feed on every system. Other control characters, which no reader sees, become spaces; halves of
    a surrogate pair stay as written.

    >>> without_escapes("two_x000D_\nlines_x0009_of_x000B_it"), without_escapes("_x005F_x0041_")
    ('two\nlines\tof it', '_x0041_')
    """
    if "_x" not in text:
        return text
    return _ESCAPED.sub(_unescaped, text).replace("\r\n", "\n").replace("\r", "\n")


def _unescaped(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    if 0xD800 <= number <= 0xDFFF:
        return found[0]
    return chr(number) if number >= ord(" ") or chr(number) in _WRITTEN else " "


def with_plain_strings(data: bytes) -> tuple[bytes, int]:
    """Return an Excel file whose texts say in characters what the formats of their parts say, and a number.

    A raised or lowered part gets its mark, as in documents: 10^6. A part that is struck through is left out unless the
    whole text is; the number is that of the texts with such parts. A file without such formats is returned as it is.

    Raises:
        LoadingError: The texts are not XML that can be read; the message is only the reason.
    """
    changed: dict[str, bytes] = {}
    struck = 0
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        for name in parts.namelist():
            if name.lower().endswith(_SHARED) or name.startswith(_SHEETS):
                part = parts.read(name)
                if any(mark in part for mark in _FORMATS):
                    strings = _Strings(part)
                    changed[name] = strings.replaced()
                    struck += strings.struck
        if not changed:
            return data, 0
        plain = io.BytesIO()
        with zipfile.ZipFile(plain, "w") as written:
            for name in dict.fromkeys(parts.namelist()):
                written.writestr(name, changed[name] if name in changed else parts.read(name))
    return plain.getvalue(), struck


class _Strings:
    """The texts of a part of the file, and their places in it."""

    def __init__(self, part: bytes) -> None:
        self.struck = 0
        self._part = part
        self._found: list[tuple[int, int, str, str]] = []
        self._began, self._prefix = 0, ""
        self._pieces: list[tuple[str, Script, bool]] = []
        self._text: list[str] | None = None
        self._script: Script = ""
        self._is_struck = False
        self._is_phonetic = False
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def replaced(self) -> bytes:
        """Return the part with texts of one piece."""
        try:
            self._parser.Parse(self._part, True)
        except expat.ExpatError as error:
            raise LoadingError(f"its texts are not XML that can be read ({error})") from error
        kept, end = [], 0
        for began, ended, prefix, text in self._found:
            opening = self._part[began : self._part.index(b">", began) + 1]
            inner = f'<{prefix}t xml:space="preserve">{escape(text)}</{prefix}t>'
            kept += [self._part[end:began], opening, inner.encode()]
            end = ended
        return b"".join([*kept, self._part[end:]])

    def _start(self, name: str, marks: dict[str, str]) -> None:
        match name.rpartition(":")[2]:
            case "si" | "is":
                self._pieces, self._began = [], self._parser.CurrentByteIndex
                self._prefix = name[: name.rfind(":") + 1]
            case "r":
                self._script, self._is_struck = "", False
            case "rPh":
                self._is_phonetic = True
            case "vertAlign":
                self._script = _SCRIPTS.get(marks.get("val", ""), "")
            case "strike":
                self._is_struck = marks.get("val", "1") not in ("0", "false")
            case "t":
                self._text = []

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, name: str) -> None:
        match name.rpartition(":")[2]:
            case "t":
                if not self._is_phonetic:
                    self._pieces.append(("".join(self._text or ()), self._script, self._is_struck))
                self._text = None
            case "r":
                self._script, self._is_struck = "", False
            case "rPh":
                self._is_phonetic = False
            case "si" | "is":
                self._close()

    def _close(self) -> None:
        if not any(script or is_struck for _, script, is_struck in self._pieces):
            return  # it stays as it is written, also as an empty element
        kept = [(text, script) for text, script, is_struck in self._pieces if not is_struck]
        self.struck += len(kept) < len(self._pieces)
        if not any(text.strip() for text, _ in kept):
            kept = [(text, script) for text, script, _ in self._pieces]
        self._found.append((self._began, self._parser.CurrentByteIndex, self._prefix, with_marks(kept)))
