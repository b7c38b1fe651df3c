"""The tables of keys and of what their holders spent: one SQLite file for a machine, or PostgreSQL for several."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ....graphs.stores.registry import is_postgres
from ....modules.addresses import Address
from ....modules.errors import DependencyError, StoreFailure, reason_of
from ....modules.redaction import starred
from ....modules.settings import Settings
from ....modules.storage.databases import Database, open_database
from ....modules.storage.tables import Statement, Tables

FILE_NAME = "keys.sqlite"
_TURN_S = 30.0
"""Seconds that a statement waits for those of other threads, one of which may hang."""

_TABLES = Tables(
    thing="keys",
    names=("keys", "key_use", "key_format"),
    create=(
        "CREATE TABLE IF NOT EXISTS {prefix}keys (id TEXT PRIMARY KEY, digest TEXT NOT NULL, revoked_at TEXT NOT NULL, "
        "last_used_at TEXT NOT NULL, document TEXT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS {prefix}key_use (run_id TEXT PRIMARY KEY, turn_id TEXT NOT NULL, "
        "key_id TEXT NOT NULL, day TEXT NOT NULL, usd DOUBLE PRECISION NOT NULL, tokens BIGINT NOT NULL, "
        "seconds DOUBLE PRECISION NOT NULL)",
    ),
    remedy="Move it away, and make the keys anew: judgetree keys add",
    exclusive=True,
)


class KeyTables:
    """The tables, opened at their first use and shared by all threads; every method blocks.

    They are in PostgreSQL where the checkpoints are, so that all workers have them, and otherwise in a file of the home
    folder, which the workers of one machine share.
    """

    def __init__(self, settings: Settings) -> None:
        url = settings.checkpoint_url
        self._url: Address | None = Address(url) if is_postgres(url) else None
        self._path = settings.home / FILE_NAME
        self._lock = threading.Lock()
        self._file: Database | None = None

    @property
    def exist(self) -> bool:
        """Whether there may be any; False for a file that was never written."""
        return self._url is not None or self._path.exists()

    def read(self, sql: str, *parameters: object) -> list[tuple[object, ...]]:
        """Return the rows of a query.

        Raises:
            StoreFailure: The tables cannot be used.
        """
        with self._opened() as file:
            return file.read((sql, parameters))

    def write(self, *statements: Statement) -> None:
        """Execute statements in one transaction, while no other worker writes.

        Raises:
            StoreFailure: The tables cannot be used.
        """
        # PostgreSQL locks several statements only: a single one is its own transaction.
        with self._opened() as file:
            file.write([("SELECT 1", ()), *statements])

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            self._close()

    @contextmanager
    def _opened(self) -> Iterator[Database]:
        if not self._lock.acquire(timeout=_TURN_S):
            raise StoreFailure(f"The store of the keys has not answered for {_TURN_S:g} s. Check that it runs.")
        try:
            with self._errors():
                if self._file is None:
                    self._file = open_database(self._url or self._path, _TABLES)
                yield self._file
        except BaseException:
            self._close()
            raise
        finally:
            self._lock.release()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(Exception):  # it may be broken, which is why it is closed
                file.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        where = str(self._url) if self._url else str(self._path)
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreFailure(
                f"The keys in {where} cannot be used: {reason_of(error)}. Check that it can be read and written."
            ) from error
        except ImportError as error:
            raise DependencyError('Keys in PostgreSQL need an extra: pip install "judgetree[postgres]"') from error
        except Exception as error:
            if self._url is None or not type(error).__module__.startswith("psycopg"):
                raise
            said = starred(" ".join(str(error).split()), self._url.secrets())
            raise StoreFailure(
                f"The keys in {where} cannot be used: {said}. Check JUDGETREE_CHECKPOINTS and that PostgreSQL runs."
            ) from error
