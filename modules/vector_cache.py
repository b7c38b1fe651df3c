"""Vectors kept by content, so that a text is embedded once and never again."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt
from filelock import FileLock

logger = logging.getLogger(__name__)

Vector = npt.NDArray[np.float32]
"""Shape (dimension,)."""

T = TypeVar("T")

_SCHEMA = """\
CREATE TABLE IF NOT EXISTS vectors (
    embedder TEXT NOT NULL,
    digest BLOB NOT NULL,  -- sha256 of the text
    vector BLOB NOT NULL,  -- float32, little endian
    PRIMARY KEY (embedder, digest)
)"""
_BUSY_TIMEOUT_S = 30.0
_DIGESTS_PER_SELECT = 500
"""SQLite builds may allow no more than 999 parameters a statement."""
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class VectorCache:
    """Vectors by (name of the embedder, text) in one SQLite file.

    Threads may share an object, processes may share the file; an object must not cross a ``fork``. A cache is never a
    reason to fail: a corrupt file is warned about and made anew, and one that cannot be read or written (rights, full
    disk) is warned about and left alone from then on, as if it were empty.

    The file is opened, and its folder made, at the first use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closer: Callable[[], object] = lambda: None
        self._usable = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def get_many(self, embedder: str, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors that are there, by text; a text without one is left out."""
        texts_by_digest = {_digest(text): text for text in texts}

        def select(connection: sqlite3.Connection) -> dict[str, Vector]:
            found: dict[str, Vector] = {}
            for digests in _batches(list(texts_by_digest), _DIGESTS_PER_SELECT):
                marks = ",".join("?" * len(digests))
                query = f"SELECT digest, vector FROM vectors WHERE embedder = ? AND digest IN ({marks})"
                for digest, blob in connection.execute(query, (embedder, *digests)):
                    found[texts_by_digest[digest]] = np.frombuffer(blob, dtype="<f4")
            return found

        return self._attempt(select, otherwise={})

    def put_many(self, embedder: str, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors, by text, in one transaction; a text that has one already keeps it."""
        rows = [(embedder, _digest(text), vector.astype("<f4").tobytes()) for text, vector in vectors.items()]

        def insert(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)

        if rows:
            self._attempt(insert, otherwise=None)

    def dimension_of(self, embedder: str) -> int | None:
        """Length of the vectors of an embedder; None where there are none yet."""

        def select(connection: sqlite3.Connection) -> int | None:
            query = "SELECT length(vector) / 4 FROM vectors WHERE embedder = ? LIMIT 1"
            row = connection.execute(query, (embedder,)).fetchone()
            return None if row is None else int(row[0])

        return self._attempt(select, otherwise=None)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._connection = None
            self._closer()

    def _attempt(self, work: Callable[[sqlite3.Connection], T], *, otherwise: T) -> T:
        """What ``work`` gives, tried again once on a file made anew if this one is corrupt, else ``otherwise``."""
        with self._lock:
            for may_rebuild in (True, False):
                if not self._usable:
                    break
                try:
                    return work(self._open())
                except (sqlite3.Error, OSError) as error:
                    if may_rebuild and getattr(error, "sqlite_errorcode", None) in _CORRUPT:
                        self._rebuild(error)
                    else:
                        self._usable = False
                        logger.warning("The vector cache %s cannot be used, going on without: %s", self.path, error)
            return otherwise

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._file_lock():
                self._connection = _connect(self.path)
                self._closer = weakref.finalize(self, self._connection.close)
                # Switching to WAL does not wait for other processes, whatever the busy timeout; hence the file lock.
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.execute(_SCHEMA)
        return self._connection

    def _rebuild(self, error: Exception) -> None:
        self.close()
        with self._file_lock():
            if _is_sound(self.path):  # another process was faster
                return
            logger.warning("The vector cache %s is corrupt (%s) and is made anew.", self.path, error)
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _file_lock(self) -> FileLock:
        return FileLock(self.path.with_name(self.path.name + ".lock"))


class RecentVectors:
    """The vectors used last, in memory; safe between threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> Vector | None:
        """The vector of a text, which thereby becomes the most recent one."""
        with self._lock:
            if text not in self._vectors:
                return None
            self._vectors.move_to_end(text)
            return self._vectors[text]

    def put(self, text: str, vector: Vector) -> None:
        """Keep a vector, and drop the one that was not used for longest when there are too many."""
        with self._lock:
            self._vectors[text] = vector
            self._vectors.move_to_end(text)
            if len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)


def _is_sound(path: Path) -> bool:
    connection = _connect(path)
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    # IMMEDIATE, since a transaction that turns from reading to writing fails at once where it should wait.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
