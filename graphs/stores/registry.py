"""The kinds of checkpoint stores by what their addresses begin with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...modules.addresses import Address
from ...modules.errors import SettingsError
from ...modules.settings import without_secrets
from .contract import CheckpointStore
from .memory import MemoryStore
from .postgres import PostgresStore
from .redis import RedisStore
from .sqlite import SQLITE, SqliteStore

STORES: Mapping[str, type[CheckpointStore]] = {
    "memory:": MemoryStore,
    SQLITE: SqliteStore,
    "postgresql://": PostgresStore,
    "postgres://": PostgresStore,
    "redis://": RedisStore,
    "rediss://": RedisStore,
}
ALLOWED_URLS = (
    "memory:, sqlite:///relative/or//absolute/path, postgresql://user@host/database, redis://user:password@host:6379/0"
)


def store_of(url: str) -> CheckpointStore:
    """Return the checkpoint store at a URL; nothing is opened.

    >>> type(store_of("redis://localhost:6379/0")).__name__
    'RedisStore'

    Raises:
        SettingsError: No checkpoint store has such a URL.
    """
    kind = next((kind for start, kind in STORES.items() if url.startswith(start)), None)
    is_whole = {MemoryStore: url == "memory:", SqliteStore: bool(Path(url.removeprefix(SQLITE)).name)}
    if kind is None or not is_whole.get(kind, True):
        shown = without_secrets(Address(url))
        raise SettingsError(f"Unknown checkpoint store {shown!r}. Allowed: {ALLOWED_URLS}. Set JUDGETREE_CHECKPOINTS.")
    if Address(url).has_cut_secret:
        raise SettingsError(
            f"The address {without_secrets(Address(url))!r} in JUDGETREE_CHECKPOINTS has a user or password with "
            "/, ? or #. Write these as %2F, %3F and %23."
        )
    return kind(url)


def is_postgres(url: str) -> bool:
    """Return whether checkpoints with this URL are in PostgreSQL, where keys, budgets and runs have tables too."""
    return url.startswith(("postgresql://", "postgres://"))
