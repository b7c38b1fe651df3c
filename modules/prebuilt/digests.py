"""SHA-256 of large files, computed once as long as path, size and times of change stay."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import LoadingError
from ..progress import StageProgress
from ..storage.sqlite_cache import SqliteCache

BLOCK_BYTES = 1 << 22

# The table "digests", which earlier versions filled, has files whose numbers nobody checked.
_SCHEMA = """CREATE TABLE IF NOT EXISTS checked_digests (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    digest TEXT NOT NULL
)"""


@dataclass(frozen=True, kw_only=True)
class FileState:
    """A file as it was at one time: another size or time of change means another content."""

    path: Path
    size: int
    mtime_ns: int
    ctime_ns: int
    """Time of the last change of the file or of what is known of it: unlike ``mtime_ns``, no program can set it."""

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Look at a file.

        Raises:
            LoadingError: There is no such file, or it cannot be read.
        """
        try:
            found = path.stat()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            said = error.strerror if isinstance(error, OSError) else error
            raise LoadingError(f"{str(path)!r:.300} cannot be read: {said}.") from error
        if not path.is_file():
            raise LoadingError(f"{path} is no file.")
        return cls(path=path.resolve(), size=found.st_size, mtime_ns=found.st_mtime_ns, ctime_ns=found.st_ctime_ns)


class FileDigests(SqliteCache):
    """A file of the digests of files."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA, thing="file-digests")

    def known(self, state: FileState) -> str | None:
        """Return the digest of a file; None if it was not kept, or the file has changed."""

        def select(connection: sqlite3.Connection) -> str | None:
            query = "SELECT digest FROM checked_digests WHERE path = ? AND size = ? AND mtime_ns = ? AND ctime_ns = ?"
            row = connection.execute(query, _row(state)).fetchone()
            return None if row is None else str(row[0])

        return self.attempt(select, otherwise=None)

    def keep(self, state: FileState, digest: str) -> None:
        """Keep the digest of a file."""

        def replace(connection: sqlite3.Connection) -> None:
            connection.execute("REPLACE INTO checked_digests VALUES (?, ?, ?, ?, ?)", (*_row(state), digest))

        self.attempt(replace, otherwise=None, writes=True)

    def digest_of(self, state: FileState, on_progress: StageProgress | None) -> str:
        """Return the digest of a file, read if it is not known.

        Raises:
            LoadingError: The file cannot be read, or changed meanwhile.
        """
        if (known := self.known(state)) is None:
            known = digest_reading(state, on_progress)
            self.keep(state, known)
        return known


def digest_reading(
    state: FileState, on_progress: StageProgress | None, also: Callable[[bytes], None] = lambda block: None
) -> str:
    """Return the SHA-256 of a file, which is read in blocks once; each is given to ``also`` too.

    ``on_progress`` hears of megabytes.

    Raises:
        LoadingError: The file cannot be read, or changed meanwhile.
    """
    digest, done, stage = hashlib.sha256(), 0, f"read {state.path.name}, MB"
    try:
        with state.path.open("rb", buffering=0) as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                also(block)
                done += len(block)
                if on_progress is not None:
                    on_progress(_megabytes(done), _megabytes(state.size), stage)
    except OSError as error:
        raise LoadingError(f"{state.path} cannot be read: {error.strerror}.") from error
    if FileState.of(state.path) != state:
        raise LoadingError(f"{state.path} changed while it was read. Open it once it is complete.")
    return digest.hexdigest()


def _megabytes(size: int) -> int:
    """Round up, since a total of 0 stands for one that is unknown."""
    return -(-size >> 20)


def _row(state: FileState) -> tuple[str, int, int, int]:
    return str(state.path), state.size, state.mtime_ns, state.ctime_ns
