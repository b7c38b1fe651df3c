"""What a drawing of a search tree says besides the tree: remarks on the whole, marks on chunks, numbers of queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A mark on one chunk."""

    word: str
    note: str = ""
    colour: str = "#1F4E79"

    @property
    def words(self) -> str:
        """The word and the note."""
        return f"{self.word}: {self.note}" if self.note else self.word


@dataclass(frozen=True, kw_only=True)
class Marks:
    """Additions to a drawing."""

    remarks: tuple[str, ...] = ()
    """Sentences about the whole tree."""
    chunks: Mapping[tuple[str, str], Mark] = field(default_factory=dict)
    """By the thread of the query and the id of the chunk."""
    numbers: bool = False
    """Whether queries and chunks stand with their names (see ``tree.places``), where the drawing is text."""


UNMARKED = Marks()
