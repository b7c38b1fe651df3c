"""Data that a page carries packed, to be unpacked by packs.js when it is looked at.

Search trees are the bulk of a page that shows many, and are looked at one by one: each goes into a pack of its own
(JSON, gzip, base64). Texts of chunks, which many trees share, stand once in a pack of theirs.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass, field

from .html import Json

_EFFORT = 6


def pack(data: Json) -> str:
    """The data as base64 text; the same data always gives the same."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8"), _EFFORT, mtime=0)).decode("ascii")


@dataclass(frozen=True)
class SharedTexts:
    """Texts, each once, which packed data refers to by place."""

    _places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        """The place of a text, which is taken in if it is new."""
        return self._places.setdefault(text, len(self._places))

    def all(self) -> list[str]:
        """The texts by place."""
        return list(self._places)
