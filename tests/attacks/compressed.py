"""Replies that are packed although nothing packed was asked for: some unpack to a gigabyte, some to nothing."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from functools import cache

from .servers import GOOD, Misbehaviour, says

_MEGABYTES = 1_000


@cache
def _deflated(wbits: int, start: bytes = b"") -> bytes:
    """A gigabyte of spaces, packed: one block that needs none before it, a thousand times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    head = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * 1_000_000) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * _MEGABYTES


_GZIP, _ZLIB = 31, 15

PACKED: Mapping[str, Misbehaviour] = {
    "gzip-bomb": says("200 OK", _deflated(_GZIP), "Content-Encoding: gzip"),
    "deflate-bomb": says("200 OK", _deflated(_ZLIB), "Content-Encoding: deflate"),
    "nested-bomb": says("200 OK", gzip.compress(_deflated(_GZIP)), "Content-Encoding: gzip, gzip"),
    "packed-without-saying": says("200 OK", gzip.compress(GOOD)),
    "cut-gzip": says("200 OK", gzip.compress(GOOD)[:-12], "Content-Encoding: gzip"),
    "unknown-packing": says("200 OK", GOOD, "Content-Encoding: rot13"),
    "thousand-packings": says("200 OK", GOOD, f"Content-Encoding: {', '.join(['gzip'] * 1_000)}"),
    "error-with-bomb": says("500 Internal Server Error", _deflated(_GZIP), "Content-Encoding: gzip"),
}
