"""Caches of vectors by text, so that a text is embedded once."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import UserError
from ..storage.sqlite import transaction
from ..storage.sqlite_cache import SqliteCache

logger = logging.getLogger(__name__)

Vector = npt.NDArray[np.float32]
"""Shape (dimension,)."""

_SCHEMA = """\
CREATE TABLE IF NOT EXISTS vectors (
    embedder TEXT NOT NULL,
    digest BLOB NOT NULL,  -- sha256 of the text
    vector BLOB NOT NULL,  -- float32, little endian
    PRIMARY KEY (embedder, digest)
)"""
_BYTES_A_NUMBER = 4
_DIGESTS_PER_SELECT = 500
"""Digests in one statement; SQLite builds may allow only 999 parameters."""


class VectorCache(SqliteCache):
    """A file of vectors by embedder and text."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA, thing="vector-cache")

    def get_many(self, embedder: str, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the saved vectors by text, all of one length; a text without one is left out.

        Vectors that no version saves any more are deleted, with a warning: those with a number that is not finite, and
        all that were found if their lengths differ.
        """
        texts_by_digest = {_digest(text): text for text in texts}
        every_digest = list(texts_by_digest)

        def select(connection: sqlite3.Connection) -> dict[str, Vector]:
            found: dict[bytes, bytes] = {}
            for start in range(0, len(every_digest), _DIGESTS_PER_SELECT):
                digests = every_digest[start : start + _DIGESTS_PER_SELECT]
                marks = ",".join("?" * len(digests))
                query = f"SELECT digest, vector FROM vectors WHERE embedder = ? AND digest IN ({marks})"
                found.update(connection.execute(query, (embedder, *digests)).fetchall())
            if broken := _broken(found):
                self._delete(connection, embedder, broken)
            sound = found.keys() - broken
            return {texts_by_digest[each]: np.frombuffer(found[each], dtype="<f4") for each in found if each in sound}

        return self.attempt(select, otherwise={})

    def put_many(self, embedder: str, vectors: Mapping[str, Vector]) -> None:
        """Save vectors by text in one transaction; a text that has one keeps it.

        Raises:
            UserError: Their lengths differ, among each other or from those of the embedder that are saved.
        """
        rows = [(embedder, _digest(text), vector.astype("<f4").tobytes()) for text, vector in vectors.items()]

        def insert(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                self._check_lengths(embedder, {len(blob) for _, _, blob in rows}, _first_bytes(connection, embedder))
                connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)

        if rows:
            self.attempt(insert, otherwise=None, writes=True)

    def dimension_of(self, embedder: str) -> int | None:
        """Return the length of an embedder's saved vectors; None if there are none."""

        def select(connection: sqlite3.Connection) -> int | None:
            return (_first_bytes(connection, embedder) or 0) // _BYTES_A_NUMBER or None

        return self.attempt(select, otherwise=None)

    def _delete(self, connection: sqlite3.Connection, embedder: str, digests: Iterable[bytes]) -> None:
        rows = [(embedder, digest) for digest in digests]
        logger.warning("%d vectors of %s in %s are broken, and are computed again.", len(rows), embedder, self.path)
        with transaction(connection):
            connection.executemany("DELETE FROM vectors WHERE embedder = ? AND digest = ?", rows)

    def _check_lengths(self, embedder: str, new: set[int], saved: int | None) -> None:
        if len(lengths := new | ({saved} if saved else set())) < 2:
            return
        listed = ", ".join(str(each // _BYTES_A_NUMBER) for each in sorted(lengths))
        were = f", of which those of length {saved // _BYTES_A_NUMBER} were saved before" if saved else ""
        raise UserError(
            f"The embedding model {embedder} gave vectors of lengths {listed}{were}. Vectors of one model have one "
            f"length, so none of these is saved. If another model has that name now, delete {self.path}, whose vectors "
            "are computed again; else see to the model's server."
        )


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


def _first_bytes(connection: sqlite3.Connection, embedder: str) -> int | None:
    row = connection.execute("SELECT length(vector) FROM vectors WHERE embedder = ? LIMIT 1", (embedder,)).fetchone()
    return None if row is None else int(row[0])


def _broken(vectors: Mapping[bytes, bytes]) -> set[bytes]:
    """Return the digests of the vectors that cannot be used."""
    if len({len(blob) for blob in vectors.values()}) > 1:
        return set(vectors)
    return {
        digest
        for digest, blob in vectors.items()
        if not blob or len(blob) % _BYTES_A_NUMBER or not np.isfinite(np.frombuffer(blob, dtype="<f4")).all()
    }


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
