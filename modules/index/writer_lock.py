"""One writer at a time for a collection, across processes and hosts.

On a server a writer creates a small collection, whose properties hold its name and its lease, with the alias
``NAME__lock_1``: Milvus refuses to create an alias that exists. The writer renews the lease while it works. A lease
that another process has seen unchanged for its whole length is stale; clocks of hosts are not compared. A successor
creates the alias of the next number, again the only one, and then must see no alias of a live writer: of two successors
the later one sees the other and gives up. A release removes the collection.

A Milvus Lite folder is on this machine, so that a lock on a file in it suffices; it ends with its process.
"""

from __future__ import annotations

import json
import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CollectionError, MilvusFailure
from ..storage.file_locks import hold_lock
from ..trust.private import private_folder
from .connection import MilvusConnection
from .schema import lock_alias, lock_collections, lock_number, new_lock_name

if TYPE_CHECKING:
    from pymilvus import MilvusClient

logger = logging.getLogger(__name__)

LEASE_S = 30.0
WAIT_S = 600.0
PROPERTY = "judgetree_writer"
_RENEWALS_A_LEASE = 4
_LOOK_AGAIN_S = 0.25
_STRAY_S = 3600.0


@dataclass(frozen=True, kw_only=True)
class LockOptions:
    """The waiting time for another writer, and the length of a lease."""

    wait_s: float = WAIT_S
    """Most seconds to wait; 0 fails at once."""
    lease_s: float = LEASE_S
    """Seconds that the next writer waits after a writer was killed."""


Check = Callable[[], None]
"""A function to call right before each change; raises ``CollectionError`` if another writer has taken over."""


@contextmanager
def writer_lock(
    connection: MilvusConnection, name: str, options: LockOptions, *, on_wait: Callable[[str], None]
) -> Iterator[Check]:
    """Hold the lock of a collection, which need not exist; ``on_wait`` is called once with another writer's name.

    Raises:
        CollectionError: Another writer did not finish within ``options.wait_s``.
    """
    if connection.folder is None:
        with _server_lock(connection.client, name, options, on_wait) as check:
            yield check
        return
    with _file_lock(connection.folder, name, options, on_wait):
        for left_behind in lock_collections(connection.client, name):
            connection.client.drop_collection(left_behind)  # by a server that used this folder
        yield lambda: None  # a process that is silent keeps the lock


@contextmanager
def _file_lock(folder: Path, name: str, options: LockOptions, on_wait: Callable[[str], None]) -> Iterator[None]:
    file = folder / "writers" / f"{name}.lock"
    private_folder(file.parent)
    with hold_lock(file, wait_s=options.wait_s, on_wait=on_wait, busy=lambda owner: _busy(name, owner, options)):
        yield


@contextmanager
def _server_lock(
    client: MilvusClient, name: str, options: LockOptions, on_wait: Callable[[str], None]
) -> Iterator[Check]:
    held = _acquire(client, name, options, on_wait)
    stop = threading.Event()
    renewing = threading.Thread(target=held.keep_renewing, args=(stop,), name=f"lease of {name}", daemon=True)
    renewing.start()
    try:
        yield held.check
    finally:
        stop.set()
        renewing.join()
        held.release()


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Another writer: its alias, its collection and that collection's lease."""

    alias: str
    collection: str
    lease: str
    """The stored text; a change of it is a sign of life."""

    def words(self) -> str:
        """Return the name of the writer in messages."""
        return str(_parsed(self.lease).get("owner", "another process"))

    def lease_s(self) -> float:
        """Return the seconds that the writer may be silent."""
        length = _parsed(self.lease).get("lease_s")
        return float(length) if isinstance(length, int | float) else LEASE_S


@dataclass(kw_only=True)
class _Held:
    """The lock that this process holds."""

    client: MilvusClient
    name: str
    alias: str
    collection: str
    lease_s: float
    renewed_at: float = field(default_factory=time.monotonic)
    lost: bool = False
    _beat: int = 0
    _renewing: threading.Lock = field(default_factory=threading.Lock)

    def keep_renewing(self, stop: threading.Event) -> None:
        """Renew the lease until ``stop`` is set, or until it is lost."""
        while not stop.wait(self.lease_s / _RENEWALS_A_LEASE) and not self.lost:
            with suppress(CollectionError):  # the server may be away for a moment; check() raises when it matters
                self.renew()

    def renew(self) -> None:
        """Renew the lease, as a sign of life.

        Raises:
            CollectionError: Another writer took over, or Milvus does not answer.
        """
        with self._renewing:
            try:
                self._beat += 1
                properties = {PROPERTY: _lease(self.lease_s, self._beat)}
                self.client.alter_collection_properties(self.collection, properties)
                self.renewed_at = time.monotonic()
                if _target(self.client, self.alias) == self.collection:
                    return
            except MilvusFailure:
                if self.client.has_collection(self.collection):
                    raise
            self.lost = True
            raise self._overtaken()

    def check(self) -> None:
        """Check that the lock is held for longer than one call takes, renewing it if needed.

        Raises:
            CollectionError: Another writer took over, or Milvus does not answer.
        """
        if self.lost:
            raise self._overtaken()
        if time.monotonic() - self.renewed_at > self.lease_s / 2:
            self.renew()

    def release(self) -> None:
        """Release the lock, unless another writer took over."""
        with suppress(CollectionError):
            self.renew()  # no other writer can take over between this line and the next
            self.client.drop_alias(self.alias)
        with suppress(CollectionError):
            self.client.drop_collection(self.collection)

    def _overtaken(self) -> CollectionError:
        return CollectionError(
            f"This process was silent for {self.lease_s:g} s while it wrote to the collection {self.name!r}, and "
            "another writer took over. Nothing of the other one was changed; index again."
        )


def _acquire(client: MilvusClient, name: str, options: LockOptions, on_wait: Callable[[str], None]) -> _Held:
    until = time.monotonic() + options.wait_s
    seen: dict[_Writer, float] = {}
    waited_for = ""
    while True:
        now = time.monotonic()
        writers = _writers(client, name)
        seen = {writer: seen.get(writer, now) for writer in writers}
        alive = [writer for writer in writers if now - seen[writer] < writer.lease_s()]
        if not alive:
            if held := _try_to_take(client, name, options.lease_s, stale=writers):
                return held
        elif alive[0].words() != waited_for:
            waited_for = alive[0].words()
            on_wait(waited_for)
        if time.monotonic() > until:
            raise _busy(name, waited_for or "another process", options)
        time.sleep(_LOOK_AGAIN_S * random.uniform(0.5, 1.5))  # two writers that gave up must not collide again


def _try_to_take(client: MilvusClient, name: str, lease_s: float, *, stale: list[_Writer]) -> _Held | None:
    """Return the lock, or None if another writer was faster."""
    alias = lock_alias(name, 1 + max((lock_number(writer.alias, name) or 0 for writer in stale), default=0))
    own = new_lock_name(name)
    _make_lock_collection(client, own, lease_s)
    held = _Held(client=client, name=name, alias=alias, collection=own, lease_s=lease_s)
    try:
        if not _create_alias(client, own, alias):
            client.drop_collection(own)
            return None
        # Another writer may have found other leases stale, and created another alias.
        others = {(writer.alias, writer.collection) for writer in _writers(client, name)} - {(alias, own)}
        if _target(client, alias) != own or not others <= {(writer.alias, writer.collection) for writer in stale}:
            held.release()
            return None
        for writer in stale:
            logger.info("Taking over from %s, which was silent for %g s.", writer.words(), writer.lease_s())
            if _target(client, writer.alias) == writer.collection:
                client.drop_alias(writer.alias)
            client.drop_collection(writer.collection)
        _drop_strays(client, name, keep=own)
    except BaseException:
        held.release()
        raise
    return held


def _drop_strays(client: MilvusClient, name: str, *, keep: str) -> None:
    """Drop the collections of writers that were killed before they had an alias."""
    for collection in lock_collections(client, name):
        if collection == keep:
            continue
        with suppress(MilvusFailure):  # its writer may drop it at this moment
            properties = client.describe_collection(collection).get("properties") or {}
            made_at = _parsed(str(properties.get(PROPERTY, ""))).get("made_at")
            if not isinstance(made_at, int | float) or time.time() - made_at > _STRAY_S:
                client.drop_collection(collection)


def _writers(client: MilvusClient, name: str) -> list[_Writer]:
    numbers = {alias: lock_number(alias, name) for alias in client.list_aliases()["aliases"]}
    found = (_writer(client, alias) for alias, number in sorted(numbers.items(), key=lambda one: one[1] or 0) if number)
    return [writer for writer in found if writer is not None]


def _writer(client: MilvusClient, alias: str) -> _Writer | None:
    try:
        described = client.describe_collection(alias)
    except MilvusFailure:
        if _target(client, alias) is None:
            return None  # it was released meanwhile
        raise
    lease = str((described.get("properties") or {}).get(PROPERTY, ""))
    return _Writer(alias=alias, collection=str(described["collection_name"]), lease=lease)


def _target(client: MilvusClient, alias: str) -> str | None:
    if alias not in client.list_aliases()["aliases"]:
        return None
    with suppress(MilvusFailure):
        return str(client.describe_alias(alias)["collection_name"])
    return None


def _create_alias(client: MilvusClient, collection: str, alias: str) -> bool:
    try:
        client.create_alias(collection, alias)
    except MilvusFailure:
        if _target(client, alias) is None:
            raise
        return False
    return True


def _make_lock_collection(client: MilvusClient, collection: str, lease_s: float) -> None:
    from pymilvus import DataType  # noqa: PLC0415 - takes a second to import

    schema = client.create_schema(auto_id=False)
    schema.add_field("pk", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=2)  # required by Milvus
    client.create_collection(collection, schema=schema, properties={PROPERTY: _lease(lease_s, 0)})


def _lease(lease_s: float, beat: int) -> str:
    owner = f"process {os.getpid()} on {socket.gethostname()}"
    return json.dumps({"owner": owner, "lease_s": lease_s, "beat": beat, "made_at": time.time()})


def _parsed(lease: str) -> dict[str, object]:
    with suppress(ValueError):
        if isinstance(document := json.loads(lease), dict):
            return document
    return {}


def _busy(name: str, owner: str, options: LockOptions) -> CollectionError:
    return CollectionError(
        f"The collection {name!r} is being written by {owner}, which did not finish within {options.wait_s:g} s. Try "
        "again later, or wait for longer (--wait SECONDS, LockOptions(wait_s=…))."
    )
