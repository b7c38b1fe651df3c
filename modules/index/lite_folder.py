"""Milvus Lite folders, shared by the processes of one user.

A Milvus Lite folder belongs to the process that holds its lock. The first process that opens a folder serves it to the
others through a Unix socket in a folder that only this user can enter (``trust.private_address``); no port is opened.
The others look several times a second whether the lock is free. When the serving process ends or is killed, one of them
takes the folder over and serves it at the same socket, where the clients of all find it again: pymilvus repeats a call
whose server is away.

Where there are no Unix sockets (Windows), a folder serves one process at a time, at a port with a random password.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..background.threads import SpareThreads
from ..errors import CollectionError
from ..storage.file_locks import is_locked, lock_holder
from ..trust.closed import close_all, is_open, open_private
from ..trust.private import private_folder
from ..trust.private_address import (
    earlier_address,
    has_unix_sockets,
    new_password,
    password_check,
    port_address,
    remake_folder,
    socket_address,
)
from ..trust.saved_names import check_saved_addresses
from ..trust.usable import NotTrusted

if TYPE_CHECKING:
    import grpc
    from milvus_lite import MilvusLite

logger = logging.getLogger(__name__)

LITE_MEMTABLE_BYTES = 1 << 30
SOCKET_FILE = "judgetree.socket"
"""File in a folder with the address of the process that serves it."""
LOOK_EVERY_S = 0.25
WAITING: Mapping[str, int | str] = {
    "grpc.service_config": json.dumps({"methodConfig": [{"name": [{}], "waitForReady": True}]}),
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 500,
}
"""Options of gRPC for clients that wait for the next server of a folder instead of failing at once."""
_OPEN_WITHIN_S = 10.0
_PUBLISHED_WITHIN_S = 5.0
"""How long another process may hold the lock of a new folder before it names its address."""
_MESSAGE_BYTES = 256 << 20
_CALLS_AT_ONCE = 10

_open: dict[str, OpenFolder] = {}
_opening = threading.Lock()


@dataclass(kw_only=True)
class OpenFolder:
    """A folder that this process uses, served by it or by another one."""

    path: Path
    address: str = field(repr=False)
    """Address for clients, which may hold a password; empty until it is served for the first time."""
    users: int = 0
    """Connections of this process."""
    _db: MilvusLite | None = None
    _server: grpc.Server | None = None
    _closed: threading.Event = field(default_factory=threading.Event)
    _taking: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_served_here(self) -> bool:
        """Whether this process serves the folder."""
        return self._db is not None

    def serve(self, *, loaded: bool) -> bool:
        """Take the folder's lock and serve it; False if another process holds the lock.

        With ``loaded`` all collections can be searched at once, as users of the former server expect.
        """
        from milvus_lite import DataDirLockedError, MilvusLite  # noqa: PLC0415 - only there with Lite

        with self._taking:
            if self._closed.is_set():
                return False
            try:
                db = MilvusLite(str(private_folder(self.path)))
            except DataDirLockedError:
                return False
            try:
                self._serve(db, loaded=loaded)
            except BaseException:
                db.close()  # else the lock stays with a process that serves nobody
                raise
            return True

    def _serve(self, db: MilvusLite, *, loaded: bool) -> None:
        import grpc  # noqa: PLC0415 - takes a second to import
        from milvus_lite.adapter.grpc.servicer import MilvusServicer  # noqa: PLC0415 - only there with Lite
        from pymilvus.grpc_gen import milvus_pb2_grpc  # noqa: PLC0415

        for name in db.list_collections() if loaded else ():
            db.get_collection(name).load()
        sizes = [(f"grpc.max_{way}_message_length", _MESSAGE_BYTES) for way in ("receive", "send")]
        password = "" if has_unix_sockets() else new_password()
        checks = [password_check(password)] if password else []
        # A pool of concurrent.futures takes no call once Python exits, and stopping would wait for that call for ever.
        calls = SpareThreads(_CALLS_AT_ONCE, name="milvus-lite")
        server = grpc.server(calls, interceptors=checks, options=sizes)
        milvus_pb2_grpc.add_MilvusServiceServicer_to_server(MilvusServicer(db), server)
        if password:
            self.address = port_address(server.add_insecure_port("127.0.0.1:0"), password)
        else:
            self.address = self.address or socket_address(self.path)
            remake_folder(self.address)
            server.add_insecure_port(self.address)
            _publish(self.path, self.address)
        server.start()
        self._db, self._server = db, server

    def follow(self) -> None:
        """Take the folder over when the process that serves it is gone."""
        threading.Thread(target=self._follow, name=f"look at {self.path.name}", daemon=True).start()

    def _follow(self) -> None:
        while not self._closed.wait(LOOK_EVERY_S):
            try:
                if not is_locked(self.path / "LOCK") and self.serve(loaded=True):
                    logger.info("This process serves %s now.", self.path)
                    return
            except Exception:
                logger.exception("This process cannot take over %s; it tries again.", self.path)

    def close(self) -> None:
        """Stop serving and free the lock, or stop following."""
        self._closed.set()
        with self._taking:
            if self._server is not None:
                self._server.stop(grace=2).wait()
            if self._db is not None:
                self._db.close()
                _close_to_others(self.path)
            self._db = self._server = None


def open_folder(uri: str) -> OpenFolder:
    """Open a Milvus Lite folder (``….db``, created if missing), or use the process that serves it.

    Each call needs one of ``release_folder``.

    Raises:
        CollectionError: The folder is not Lite's, or is held by a process that does not share it.
    """
    path = checked_folder(uri)
    # Lite splits a collection into segments of this size, and BM25 counts words by segment. Read once, at its import.
    os.environ.setdefault("MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES", str(LITE_MEMTABLE_BYTES))
    os.environ.setdefault("MILVUS_LITE_WAL_SIZE_LIMIT_BYTES", str(LITE_MEMTABLE_BYTES))
    with _opening:
        known = _open.get(str(path))
        if known is None:
            try:
                check_saved_addresses(Path(uri).expanduser())  # as named: a link hides whose home it is in
            except NotTrusted as error:
                raise CollectionError(str(error)) from error
            _prepare_process()
            known = _open[str(path)] = _opened(path)
        known.users += 1
        return known


def release_folder(folder: OpenFolder) -> None:
    """End one use of a folder; the last one of this process frees its lock."""
    with _opening:
        folder.users -= 1
        if folder.users <= 0 and _open.get(str(folder.path)) is folder:
            del _open[str(folder.path)]
            folder.close()


def checked_folder(uri: str) -> Path:
    """Return the absolute path of a Milvus Lite folder, whose parent is created.

    Raises:
        CollectionError: The path does not end in ``.db``, or is a file.
    """
    folder = Path(uri).expanduser().resolve()
    if folder.suffix != ".db":
        raise CollectionError(
            f"milvus_uri={uri!r} is neither an address (http://…, https://…, tcp://…, unix:…) nor a path ending in .db."
        )
    if folder.is_file():
        raise CollectionError(
            f"{folder} is a file of an old Milvus Lite (2.x), which cannot be read any more. "
            "Name another path and index the documents again."
        )
    private_folder(folder.parent)
    return folder


def is_served_here(address: str) -> bool:
    """Return whether this process serves the folder at an address."""
    return any(folder.address == address and folder.is_served_here for folder in list(_open.values()))


def _opened(path: Path) -> OpenFolder:
    began = time.monotonic()
    while True:
        folder = OpenFolder(path=path, address=earlier_address(path, _published(path)))
        with _explained(path):
            if folder.serve(loaded=False):
                return folder
        if address := _address_in_this_process(path):
            return OpenFolder(path=path, address=address)
        if folder.address and folder.address == _published(path) and _answers(folder.address):
            logger.info("%s is open in %s, which serves it.", path, lock_holder(path / "LOCK") or "another process")
            folder.follow()
            return folder
        if time.monotonic() - began > (_OPEN_WITHIN_S if _published(path) else _PUBLISHED_WITHIN_S):
            raise CollectionError(_why_not_open(path))
        time.sleep(LOOK_EVERY_S)  # its server is about to start, or to end


@cache
def _prepare_process() -> None:
    """Close folders at the end of the process, and let further clients of pymilvus find those that are open."""
    from milvus_lite import server_manager_instance as manager  # noqa: PLC0415 - only there with Lite

    atexit.register(_close_all)
    start = manager.start_and_get_uri

    def find_or_start(path: str, args: dict[str, object] | None = None) -> str | None:
        known = _open.get(str(Path(path).resolve()))
        return known.address if known else start(path, args)

    manager.start_and_get_uri = find_or_start


def _address_in_this_process(path: Path) -> str:
    """Return the address of a folder that another client of pymilvus has opened in this process."""
    from milvus_lite import server_manager_instance as manager  # noqa: PLC0415 - only there with Lite

    holder = lock_holder(path / "LOCK") or ""
    return str(manager.start_and_get_uri(str(path)) or "") if f"{holder} ".startswith(f"process {os.getpid()} ") else ""


def _close_all() -> None:
    with _opening:
        while _open:
            _open.popitem()[1].close()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    from milvus_lite import MilvusLiteError  # noqa: PLC0415 - only there with Lite

    try:
        yield
    except NotTrusted as error:
        raise CollectionError(str(error)) from error
    except (MilvusLiteError, OSError, RuntimeError) as error:
        raise CollectionError(
            f"Milvus Lite cannot open {path} ({error}). Check that the folder is writable and was written by Milvus "
            "Lite 3."
        ) from error


def _close_to_others(path: Path) -> None:
    """Take the rights of others from the files of a folder that they cannot enter, which Lite makes by the umask."""
    if not is_open(path):
        close_all(path)


def _publish(path: Path, address: str) -> None:
    if _published(path) == address:  # one that takes over writes nothing, since the disk may be full
        return
    half = path / f"{SOCKET_FILE}.{os.getpid()}"
    with open_private(half, "w") as file:
        file.write(address)
    half.replace(path / SOCKET_FILE)


def _published(path: Path) -> str:
    """Return the address in a folder, whether it is served or not; an empty text if there is none."""
    with suppress(OSError, UnicodeDecodeError):
        return (path / SOCKET_FILE).read_text(encoding="utf-8")
    return ""


def _answers(address: str) -> bool:
    import grpc  # noqa: PLC0415 - takes a second to import

    with grpc.insecure_channel(address) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=1)
        except grpc.FutureTimeoutError:
            return False
    return True


def _why_not_open(folder: Path) -> str:
    holder = lock_holder(folder / "LOCK") or "another process"
    why = "which does not share it with this one" if has_unix_sockets() else "and on this system one process at a time"
    return (
        f"{folder} is in use by {holder}, {why}. "
        "Close it there (Index.close(), or restart the notebook's kernel), or let a server share it, at a port that "
        "every user of this machine can reach: "
        f"milvus-lite server --data-dir {folder} --host 127.0.0.1 --port 19530, "
        "and set JUDGETREE_MILVUS_URI=http://127.0.0.1:19530 for both."
    )
