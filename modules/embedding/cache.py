"""Caches of vectors by text, so that a text is embedded once."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..sqlite_cache import SqliteCache, transaction

Vector = npt.NDArray[np.float32]
"""Shape (dimension,)."""

_SCHEMA = """\
CREATE TABLE IF NOT EXISTS vectors (
    embedder TEXT NOT NULL,
    digest BLOB NOT NULL,  -- sha256 of the text
    vector BLOB NOT NULL,  -- float32, little endian
    PRIMARY KEY (embedder, digest)
)"""
_DIGESTS_PER_SELECT = 500
"""Digests in one statement; SQLite builds may allow only 999 parameters."""


class VectorCache(SqliteCache):
    """A file of vectors by embedder and text."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA, thing="vector-cache")

    def get_many(self, embedder: str, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the saved vectors by text; a text without one is left out."""
        texts_by_digest = {_digest(text): text for text in texts}
        every_digest = list(texts_by_digest)

        def select(connection: sqlite3.Connection) -> dict[str, Vector]:
            found: dict[str, Vector] = {}
            for start in range(0, len(every_digest), _DIGESTS_PER_SELECT):
                digests = every_digest[start : start + _DIGESTS_PER_SELECT]
                marks = ",".join("?" * len(digests))
                query = f"SELECT digest, vector FROM vectors WHERE embedder = ? AND digest IN ({marks})"
                for digest, blob in connection.execute(query, (embedder, *digests)):
                    found[texts_by_digest[digest]] = np.frombuffer(blob, dtype="<f4")
            return found

        return self.attempt(select, otherwise={})

    def put_many(self, embedder: str, vectors: Mapping[str, Vector]) -> None:
        """Save vectors by text in one transaction; a text that has one keeps it."""
        rows = [(embedder, _digest(text), vector.astype("<f4").tobytes()) for text, vector in vectors.items()]

        def insert(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)

        if rows:
            self.attempt(insert, otherwise=None)

    def dimension_of(self, embedder: str) -> int | None:
        """Return the length of an embedder's saved vectors; None if there are none."""

        def select(connection: sqlite3.Connection) -> int | None:
            query = "SELECT length(vector) / 4 FROM vectors WHERE embedder = ? LIMIT 1"
            row = connection.execute(query, (embedder,)).fetchone()
            return None if row is None else int(row[0])

        return self.attempt(select, otherwise=None)


class RecentVectors:
    """The vectors used last, in memory; thread-safe."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> Vector | None:
        """Return the vector of a text, which becomes the most recent one; None if there is none."""
        with self._lock:
            if text not in self._vectors:
                return None
            self._vectors.move_to_end(text)
            return self._vectors[text]

    def put(self, text: str, vector: Vector) -> None:
        """Save a vector, and drop the least recently used one if there are too many."""
        with self._lock:
            self._vectors[text] = vector
            self._vectors.move_to_end(text)
            if len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
