"""The book of keys: adds, lists, finds and revokes them."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from ....modules.errors import SettingsError, StoreFailure
from ....modules.storage.texts import check_id
from ...stores.patience import Patience
from .key import NO_LIMITS, Budget, StoredKey, digest_of, id_in, new_key_text
from .tables import KeyTables

logger = logging.getLogger(__name__)

FRESH_S = 2.0
"""Seconds for which a worker goes by the keys that it has read: a key that was revoked is refused no later."""
LOOK_AGAIN_S = 0.25
"""Least seconds between two readings for unknown keys, which may just have been made. All requests with such keys wait
for the same reading, so that guesses cost no more."""
PATIENCE_S = 5.0
"""Seconds that a request waits for the store of the keys."""
_NOTE_USE_EVERY_S = 600.0


class KeyBook:
    """The keys of a server, shared by its workers."""

    def __init__(
        self, tables: KeyTables, *, clock: Callable[[], float] = time.monotonic, patience_s: float = PATIENCE_S
    ) -> None:
        self._tables = tables
        self._clock = clock
        self._known: Mapping[str, StoredKey] = {}
        self._read_at = float("-inf")
        self._noted_at: dict[str, float] = {}
        self._reading = threading.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._patience = Patience(patience_s, _no_answer)

    def add(
        self,
        name: str,
        *,
        collections: frozenset[str] | None = frozenset(),
        per_day: Budget = NO_LIMITS,
        per_question: Budget = NO_LIMITS,
    ) -> tuple[StoredKey, str]:
        """Make a key; returns it with its text, which is kept nowhere.

        Args:
            name: Name of its holder, in lists, logs and metrics.
            collections: Collections that it grants, none by default; None grants all, those to come included.
            per_day: What its holder may use on a day of UTC.
            per_question: What one question may use.

        Raises:
            SettingsError: The name is empty, too long or has unprintable characters, or another key has it as its name
                or id.
        """
        _check_name(name)
        if any(name in (key.name, key.id) and not key.revoked_at for key in self.entries()):
            raise SettingsError(f"There is a key {name!r} already. Take another name, or revoke that key first.")
        key_id, text = new_key_text()
        key = StoredKey(
            id=key_id,
            name=name,
            digest=digest_of(text),
            created_at=_now(),
            collections=collections,
            per_day=per_day,
            per_question=per_question,
        )
        self._tables.write(
            ("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", (key.id, key.digest, "", "", _document(key))),
        )
        return key, text

    def entries(self) -> list[StoredKey]:
        """Return all keys, the oldest first; revoked ones too."""
        if not self._tables.exist:
            return []
        rows = self._tables.read("SELECT id, digest, revoked_at, last_used_at, document FROM keys")
        return sorted((_key(*map(str, row)) for row in rows), key=lambda key: (key.created_at, key.id))

    def valid(self, id_or_name: str) -> StoredKey:
        """Return a key that is not revoked.

        Raises:
            SettingsError: No valid key has this id or name.
        """
        found = [key for key in self.entries() if id_or_name in (key.id, key.name) and not key.revoked_at]
        if not found:
            raise SettingsError(f"There is no valid key {id_or_name!r:.100}. To see them: judgetree keys list")
        return found[0]

    def revoke(self, id_or_name: str) -> StoredKey:
        """Revoke a key; servers refuse it within seconds.

        Raises:
            SettingsError: No valid key has this id or name.
        """
        found = self.valid(id_or_name)
        self._tables.write(("UPDATE keys SET revoked_at = ? WHERE id = ?", (_now(), found.id)))
        return found

    def has_any(self) -> bool:
        """Return whether any key is valid."""
        return any(not key.revoked_at for key in self.entries())

    async def find(self, text: str) -> StoredKey | None:
        """Return the valid key of a text; None if there is none.

        Raises:
            SettingsError: The keys cannot be read: no key is valid then.
        """
        key_id = id_in(text)
        if key_id is None:
            return None
        key = await self.holder(key_id)
        if key is None or not key.fits(text):
            return None
        if self._clock() - self._noted_at.get(key.id, float("-inf")) > _NOTE_USE_EVERY_S:
            self._noted_at[key.id] = self._clock()
            await self._patience.call(self._note_use, key)
        return key

    async def holder(self, key_id: str) -> StoredKey | None:
        """Return the valid key of an id, which may just have been made; None if there is none.

        Raises:
            SettingsError: The keys cannot be read: no key is valid then.
        """
        asked_at = self._clock()
        await self._refresh()
        while key_id not in self._known and self._read_at < asked_at:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look_again(), name="unknown keys")
            await asyncio.wait([self._looking])
            self._looking.result()
        return self._known.get(key_id)

    async def is_valid(self, key_id: str) -> bool:
        """Return whether a key that was valid still is.

        Raises:
            SettingsError: The keys cannot be read.
        """
        await self._refresh()
        return key_id in self._known

    async def _refresh(self) -> None:
        if self._clock() - self._read_at > FRESH_S:
            await self._patience.call(self._read_again, FRESH_S)

    async def _look_again(self) -> None:
        await asyncio.sleep(max(0.0, self._read_at + LOOK_AGAIN_S - self._clock()))
        await self._patience.call(self._read_again, 0.0)

    def _note_use(self, key: StoredKey) -> None:
        try:
            self._tables.write(("UPDATE keys SET last_used_at = ? WHERE id = ?", (_now(), key.id)))
        except SettingsError as error:  # it can be read still
            logger.warning("The use of a key was not noted: %s", error)

    def _read_again(self, max_age_s: float) -> None:
        with self._reading:
            if self._clock() - self._read_at <= max_age_s:
                return  # another thread has read them meanwhile
            began = self._clock()
            self._known = {key.id: key for key in self.entries() if not key.revoked_at}
            self._read_at = began


def _no_answer(limit_s: float) -> StoreFailure:
    return StoreFailure(
        f"The store of the keys has not answered for {limit_s:g} s. Check that it runs, then send the request again."
    )


def _document(key: StoredKey) -> str:
    collections = None if key.collections is None else sorted(key.collections)
    return json.dumps(
        {
            "name": key.name,
            "created_at": key.created_at,
            "collections": collections,
            "per_day": asdict(key.per_day),
            "per_question": asdict(key.per_question),
        }
    )


def _key(key_id: str, digest: str, revoked_at: str, last_used_at: str, document: str) -> StoredKey:
    kept = json.loads(document)
    collections = kept["collections"]
    return StoredKey(
        id=key_id,
        name=kept["name"],
        digest=digest,
        created_at=kept["created_at"],
        last_used_at=last_used_at,
        revoked_at=revoked_at,
        collections=None if collections is None else frozenset(collections),
        per_day=Budget(**kept["per_day"]),
        per_question=Budget(**kept["per_question"]),
    )


def _check_name(name: str) -> None:
    check_id("The name of a key", name)
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise SettingsError(f"The name of a key is {name!r:.120}. Allowed: 1 to 100 printable characters.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
