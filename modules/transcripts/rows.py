"""Rows of transcripts, and what keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class TranscriptRow:
    """A call as it is written: its record and texts, compressed."""

    key: bytes
    root: str
    """Root thread of the call's tree."""
    owner: str
    """Id of the conversation, or the root again; all calls of a root have one."""
    record: bytes
    parts: tuple[tuple[str, bytes, bytes], ...]
    """Role, digest and content of each text, in order."""


@dataclass(frozen=True, kw_only=True)
class FoundRow:
    """A call as it is read: its record and texts, compressed."""

    key: bytes
    record: bytes
    parts: tuple[tuple[str, bytes], ...]
    """Role and content of each text, in order."""


class ReadableTranscripts(Protocol):
    """A place that rows are read from. Its methods block, and are called by one thread at a time."""

    def read(self, keys: Sequence[bytes], root: str) -> Iterable[FoundRow]:
        """Read the rows with these keys, and those of a root unless it is ``""``, in no order."""
        ...

    def close(self) -> None:
        """Close the file, or the connections."""
        ...


class TranscriptFile(ReadableTranscripts, Protocol):
    """A place that rows are written to, too."""

    def add(self, rows: Sequence[TranscriptRow]) -> None:
        """Write rows, each whole or not at all; one whose key is there already stays as it is."""
        ...

    def delete(self, names: Iterable[str]) -> None:
        """Delete the rows of roots and owners, and the texts that no other row needs."""
        ...
