"""What a parser makes of a file: its texts, and what it left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAX_TITLE_CHARACTERS = 300

Metadata = dict[str, object]
Parsed = tuple[str, Metadata]
"""A text and its metadata."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Something of a file that a reader sees and that no text holds; parsers yield it between their texts.

    >>> LeftOut(kind="scanned page", count=2)
    LeftOut(kind='scanned page', count=2)
    """

    kind: str
    """What it is, in the singular, such that an "s" at its end makes the plural."""
    count: int = 1
    """At least 1; those of one kind are added up."""


@dataclass(frozen=True, kw_only=True)
class ReadAs:
    """The encoding in which a parser reads a file that does not say it; the parser yields it before the texts."""

    encoding: str
    """A name of Python's codecs other than UTF-8, or UTF-8 with a remark on what was unreadable."""


Piece = Parsed | LeftOut | ReadAs
"""What a parser yields."""


@dataclass(frozen=True, kw_only=True)
class ParsedFile:
    """The texts of a file, and how much of the file they leave out."""

    texts: list[Parsed]
    """In the order of the file; none is blank."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What a reader sees and the texts lack: numbers by kind, in the singular."""
    read_as: str = ""
    """The encoding that was guessed; "" if it is UTF-8 or the file says it."""

    def __iter__(self) -> Iterator[Parsed]:
        """Iterate over the texts."""
        return iter(self.texts)


def clean_text(text: str) -> str:
    """Remove NUL characters (PostgreSQL refuses them) and replace lone surrogates by U+FFFD."""
    return text.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_lines(data: bytes) -> str:
    """Return UTF-8 text, with or without a byte order mark, with the line ends of Unix.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def titled(title: str) -> Metadata:
    """Return metadata with a title that can be stored; a blank one is replaced by the file's name later."""
    return {"title": clean_text(title).strip()[:MAX_TITLE_CHARACTERS]}


def format_left_out(left_out: Mapping[str, int]) -> str:
    """Format what was left out, by kind.

    >>> format_left_out({"scanned page": 2, "equation": 1})
    '1 equation, 2 scanned pages'
    """
    return ", ".join(f"{count:,} {kind}{'s' * (count != 1)}" for kind, count in sorted(left_out.items()))
