"""Watching the files of a collection in a Milvus Lite folder for changes, at the cost of a few system calls.

Lite keeps the names of collections in ``aliases.json`` and the state of each in its ``manifest.json``, and replaces
either as a whole; rows that it has not flushed stand in files of the collection's folder ``wal``, and indexes appear
some time after the rows. So the files tell of every write, also by other processes and programs, without a request.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from .lite_files import PARTITION

FileStamp = tuple[int, int, int]
"""Inode, time of the last change in nanoseconds, and size of a file: another one after each replacement."""


@dataclass(frozen=True, kw_only=True)
class FilesState:
    """A state of a collection's files; equal states have equal content."""

    home: Path
    """Folder of the physical collection."""
    manifest: FileStamp
    indexes: frozenset[tuple[str, FileStamp]]
    """The index files that there are, by name; Lite may still be writing one of them."""

    @property
    def physical(self) -> str:
        """The name of the physical collection."""
        return self.home.name


class FilesWatch:
    """The files behind the name of a collection."""

    def __init__(self, folder: Path, name: str) -> None:
        """``folder`` is that of Milvus Lite."""
        self._folder = folder
        self._name = name
        self._reading = threading.Lock()
        self._names: tuple[FileStamp, str] | None = None

    def state(self) -> FilesState | None:
        """Return the present state; None if rows are not flushed, or there is no such collection."""
        try:
            home = self._folder / "collections" / self._physical()
            state = FilesState(
                home=home,
                manifest=_stamp((home / "manifest.json").stat()),
                indexes=frozenset(_files(home / "partitions" / PARTITION / "indexes")),
            )
            return None if _files(home / "wal") else state
        except (OSError, ValueError):
            return None

    def _physical(self) -> str:
        aliases = self._folder / "aliases.json"
        with self._reading:
            stamp = _stamp(aliases.stat())
            if self._names is None or self._names[0] != stamp:
                names = json.loads(aliases.read_text(encoding="utf-8"))
                self._names = (stamp, str(names[self._name]) if self._name in names else self._name)
            return self._names[1]


def _stamp(status: os.stat_result) -> FileStamp:
    return status.st_ino, status.st_mtime_ns, status.st_size


def _files(folder: Path) -> list[tuple[str, FileStamp]]:
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, _stamp(entry.stat())) for entry in entries]
    except FileNotFoundError:
        return []
