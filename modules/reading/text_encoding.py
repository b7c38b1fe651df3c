"""Encodings of text files: UTF-8 first, then byte order marks, then a guess from the bytes."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from ..errors import LoadingError

UTF_8 = "utf-8"
_MARKS = (  # UTF-32 first, since its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_EUROPEAN = ["cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256"]
_EAST_ASIAN = ["gb18030", "big5", "cp932", "euc_jp", "cp949"]
_WESTERN = ["cp1252", "cp1250"]
_SAMPLE_BYTES = 1 << 16
_SEVERAL = re.compile(rb"[\x80-\xff]{3}")
_ACCENTED = re.compile(r"[^\x00-\x7f](?![A-Z])")


@dataclass(frozen=True, kw_only=True)
class DecodedText:
    """The text of a file and the encoding that it was read in."""

    text: str
    encoding: str
    """``utf-8``, with or without a mark, or another name of Python's codecs; with a remark if parts were unreadable."""


def decode(data: bytes) -> DecodedText:
    """Decode a text file. Costs a few milliseconds for a file that is not UTF-8.

    Raises:
        LoadingError: It is binary, or no encoding fits; the message is only the reason.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return DecodedText(text=_decoded(data, encoding), encoding=UTF_8 if mark == codecs.BOM_UTF8 else encoding)
    if utf_16 := _utf_16_of(data):
        return DecodedText(text=_decoded(data, utf_16), encoding=utf_16)
    try:
        return DecodedText(text=data.decode(UTF_8), encoding=UTF_8)
    except UnicodeDecodeError:
        return _damaged(data) or _guessed(data)


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise LoadingError(f"it looks like {encoding} text, but is broken at byte {error.start}") from error


def _utf_16_of(data: bytes) -> str | None:
    """Return the kind of UTF-16 without a mark: every other byte of most languages' ASCII characters is NUL."""
    even, odd = data[:_SAMPLE_BYTES:2].count(0), data[1:_SAMPLE_BYTES:2].count(0)
    enough = max(4, min(len(data), _SAMPLE_BYTES) // 5)
    if len(data) % 2 or min(even, odd) * 10 > max(even, odd) or max(even, odd) < enough:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _damaged(data: bytes) -> DecodedText | None:
    """Return UTF-8 text with few broken places; another encoding would make all its other letters wrong."""
    text = data.decode(UTF_8, "replace")
    broken = text.count("\ufffd")
    if b"\x00" in data or broken * 10 > sum(not character.isascii() for character in text) - broken:
        return None
    return DecodedText(text=text, encoding=f"{UTF_8} ({broken} unreadable)")


def _guessed(data: bytes) -> DecodedText:
    from charset_normalizer import from_bytes  # noqa: PLC0415 - few files need it

    sample = _sample(data)
    # Words of other scripts have more bytes in a row than "½" or "Grüße".
    known = _EUROPEAN + _EAST_ASIAN if _SEVERAL.search(sample) else _WESTERN
    best = None if b"\x00" in data else from_bytes(sample, cp_isolation=known).best()
    if best is None:
        raise LoadingError("it is not text, or in an unknown encoding; save it as UTF-8")
    encoding = best.encoding
    if encoding in ("cp1250", "cp1252"):  # guessed by chance, since most accented letters of one are ones of the other
        encoding = "cp1250" if _letters(sample, "cp1250") > 1.25 * _letters(sample, "cp1252") + 2 else "cp1252"
    try:
        return DecodedText(text=data.decode(encoding), encoding=encoding)
    except UnicodeDecodeError as error:
        raise LoadingError(f"it is neither UTF-8 nor {encoding} text throughout; save it as UTF-8") from error


def _letters(sample: bytes, encoding: str) -> int:
    """Count the accented letters, without those before a capital: "¿Quién" begins with a letter in cp1250."""
    return sum(found.isalpha() for found in _ACCENTED.findall(sample.decode(encoding, "replace")))


def _sample(data: bytes) -> bytes:
    """Return bytes from the first one that is not ASCII on, cut at a line or a space if there is one."""
    first = next(place for place, byte in enumerate(data) if byte > 127)
    start = data.rfind(b"\n", 0, first) + 1 if first < _SAMPLE_BYTES else first
    sample = data[start : start + _SAMPLE_BYTES]
    if len(data) - start <= _SAMPLE_BYTES:
        return sample
    return sample[: max(sample.rfind(b"\n"), sample.rfind(b" ")) + 1] or sample
