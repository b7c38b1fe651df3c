"""Connections to Milvus: a Milvus Lite folder opened in this process, or a server by address."""

from __future__ import annotations

import functools
import logging
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from ..addresses import Address
from ..errors import CollectionError, MilvusFailure
from ..redaction import starred
from ..settings import load_settings, without_secrets

if TYPE_CHECKING:
    from pymilvus import MilvusClient

PATIENCE_S = 20.0
"""Seconds to wait for searches at a close; a search takes less unless an endpoint hangs."""


class OpenUses:
    """A counter of the threads that use a resource."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count as a use until the end of the block."""
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def wait_for_end(self, timeout_s: float = PATIENCE_S) -> bool:
        """Wait until no use is left; False if there is one after ``timeout_s`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, timeout_s)


_REMEDIES = (
    (
        ("fail connecting", "unavailable", "deadline", "timeout", "timed out", "closed"),
        "Check that the server runs and can be reached, then try again.",
    ),
    (
        ("permission", "privilege", "unauthenticated", "auth"),
        "Check JUDGETREE_MILVUS_TOKEN and what its user is allowed to do.",
    ),
    (
        ("quota", "rate limit", "exhausted", "no space", "disk", "memory"),
        "The server is short of room: give it more or wait, then try again.",
    ),
    (
        ("not found", "not exist", "can't find"),
        "It was dropped or replaced meanwhile: look at `judgetree collections`, then try again.",
    ),
)
_OTHER_REMEDY = "Look into the server's log, and check that it is Milvus 2.5 or newer."


def explained(client: MilvusClient) -> MilvusClient:
    """Return a client that raises ``MilvusFailure`` for every error of Milvus and of the connection."""
    return cast("MilvusClient", _ExplainedClient(client))


@contextmanager
def milvus_errors(action: str) -> Iterator[None]:
    """Raise errors of Milvus inside the block as "Milvus could not {action}".

    Raises:
        MilvusFailure: Milvus refused the call, or did not answer.
    """
    from grpc import RpcError  # type: ignore[import-untyped]  # noqa: PLC0415 - takes a second to import
    from pymilvus.exceptions import MilvusException  # noqa: PLC0415

    try:
        yield
    except (MilvusException, RpcError) as error:
        said = " ".join(str(getattr(error, "message", "") or error or type(error).__name__).split())[:300]
        lower = said.lower()
        remedy = next((remedy for words, remedy in _REMEDIES if any(word in lower for word in words)), _OTHER_REMEDY)
        raise MilvusFailure(f"Milvus could not {action}: {said.rstrip('.')}. {remedy}") from error


class _ExplainedClient:
    def __init__(self, client: MilvusClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> object:
        found = getattr(self._client, name)
        if not callable(found):
            return found

        @functools.wraps(found)
        def call(*args: object, **options: object) -> object:
            with milvus_errors(name.replace("_", " ")):
                return found(*args, **options)

        return call


CONNECT_TIMEOUT_S = 10.0
LITE_MEMTABLE_BYTES = 1 << 30
_LOOPBACK = re.compile(r"^\w+://(localhost|127\.|\[::1\])", re.IGNORECASE)
_ADDRESS = re.compile(r"^(https?|tcp|unix):", re.IGNORECASE)

_users: Counter[str] = Counter()
"""Number of connections of this process by Lite folder: they share one embedded server, which the last one ends."""
_users_lock = threading.Lock()


@dataclass(kw_only=True)
class MilvusConnection:
    """An open connection. Close it, since an open one keeps a Lite folder locked for other processes."""

    uri: str
    """Address of a server, or absolute path of a Lite folder."""
    token: str = field(repr=False)
    client: MilvusClient
    """A client that raises ``MilvusFailure`` for every failed call."""
    is_lite: bool
    """True for Lite's engine, embedded or behind ``milvus-lite server``."""
    closed: bool = False

    def close(self) -> None:
        """Close the client; the last connection of this process to a Lite folder also frees its lock."""
        if self.closed:
            return
        self.closed = True
        self.client.close()
        if is_address(self.uri):
            return
        with _users_lock:
            _users[self.uri] -= 1
            if _users[self.uri] <= 0:
                del _users[self.uri]
                _release_folder(self.uri)


def connect(uri: str | None, token: str | None = "") -> MilvusConnection:
    """Open a Milvus Lite folder (``….db``, created if missing) or connect to a server; None takes the setting.

    User and password in an address replace an empty token.

    Raises:
        CollectionError: The address is malformed or does not answer, or the folder is locked or not Lite's.
    """
    from pymilvus import MilvusClient  # noqa: PLC0415 - takes a second to import
    from pymilvus.exceptions import MilvusException  # noqa: PLC0415

    uri = load_settings().milvus_address if uri is None else uri
    token = load_settings().milvus_token.get_secret_value() if token is None else token
    # pymilvus imports it at the first search without a lock, and parallel searches would see a partial module.
    with suppress(ImportError):
        import scipy.sparse  # noqa: F401, PLC0415
    # pymilvus logs a traceback of every error that it also raises; jieba logs that it reads its dictionary.
    logging.getLogger("pymilvus.decorators").addFilter(_above_error)
    logging.getLogger("jieba").addFilter(_above_debug)
    if not is_address(uri):
        return _open_folder(uri)
    address = Address(uri)
    token = token or address.credentials() or address.query_params().get("token", "")
    try:
        client = MilvusClient(timeout=CONNECT_TIMEOUT_S, **client_arguments(address, token))
        return MilvusConnection(uri=str(address), token=token, client=explained(client), is_lite=is_lite(client))
    except MilvusException as error:
        secrets = (token, *token.split(":", 1)[1:], *address.secrets())
        raise CollectionError(
            f"No Milvus server can be used at {address} ({starred(error.message, secrets)}). Check that it runs and "
            "the token is right, or unset JUDGETREE_MILVUS_URI to use the embedded Milvus Lite."
        ) from error


class ClientArguments(TypedDict, total=False):
    """Keyword arguments of ``MilvusClient``."""

    uri: str
    token: str
    grpc_options: dict[str, int]


def client_arguments(uri: str, token: str) -> ClientArguments:
    """Return the arguments for all Milvus clients of a connection."""
    if is_address(uri) and not _LOOPBACK.match(uri):
        return {"uri": str(uri), "token": token}
    # pymilvus pings an idle connection every ten seconds, and Lite closes connections with frequent pings.
    return {"uri": str(uri), "token": token, "grpc_options": {"grpc.keepalive_time_ms": 2**31 - 1}}


def is_lite(client: MilvusClient) -> bool:
    """Return whether Milvus Lite answers: its BM25 scores are negative, and it counts words by segment."""
    return str(client.get_server_version()).startswith("milvus_lite")


def is_address(uri: str) -> bool:
    """Return whether a URI is a server's address rather than the path of a Lite folder."""
    return bool(_ADDRESS.match(uri))


def _open_folder(uri: str) -> MilvusConnection:
    from pymilvus import MilvusClient  # noqa: PLC0415 - takes a second to import
    from pymilvus.exceptions import MilvusException  # noqa: PLC0415

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
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Lite splits a collection into segments of this size, and BM25 counts words by segment. Read once, at its import.
    os.environ.setdefault("MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES", str(LITE_MEMTABLE_BYTES))
    os.environ.setdefault("MILVUS_LITE_WAL_SIZE_LIMIT_BYTES", str(LITE_MEMTABLE_BYTES))
    with _users_lock:
        try:
            with _quiet("milvus_lite.server_manager"):  # it logs a traceback for a lock held by another process
                client = MilvusClient(**client_arguments(str(folder), ""))
        except MilvusException as error:
            raise CollectionError(_why_not_open(folder)) from error
        _users[str(folder)] += 1
    return MilvusConnection(uri=str(folder), token="", client=explained(client), is_lite=True)


def _release_folder(folder: str) -> None:
    from milvus_lite.server_manager import server_manager_instance  # noqa: PLC0415 - only there with Lite

    # MilvusClient.close() leaves the embedded server running, which holds the lock.
    server_manager_instance.release_server(folder)


def _why_not_open(folder: Path) -> str:
    holder = lock_holder(folder / "LOCK")
    if holder is None and not _is_locked(folder / "LOCK"):
        return f"Milvus Lite cannot open {folder}. Check that the folder is writable and was written by Milvus Lite 3."
    return (
        f"{folder} is in use by {holder or 'another process'}; Milvus Lite serves one process at a time. "
        "Close it there (Index.close(), or restart the notebook's kernel), or let a server share it: "
        f"milvus-lite server --data-dir {folder} --host 127.0.0.1 --port 19530, "
        "and set JUDGETREE_MILVUS_URI=http://127.0.0.1:19530 for both."
    )


def lock_holder(lock: Path) -> str | None:
    """Return the process that holds a lock on a file, as ``process 123 (python -m ipykernel_launcher)``.

    None without a lock, and on systems other than Linux or across containers, where the holder is unknown.
    """
    try:
        inode = str(lock.stat().st_ino)
        table = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return None
    for line in table.splitlines():
        # "1: FLOCK  ADVISORY  WRITE 4242 fd:01:131 0 EOF"; a waiting one has "->" behind its number
        fields = line.split()
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode and int(fields[4]) > 0:
            return f"process {fields[4]}{_command_of(fields[4])}"
    return None


def _command_of(pid: str) -> str:
    try:
        words = Path("/proc", pid, "cmdline").read_text(encoding="utf-8", errors="replace").split("\x00")
    except OSError:
        return ""
    # Three words distinguish a kernel from a script; further ones may be secrets.
    command = without_secrets(" ".join([Path(words[0]).name, *words[1:3]]).strip())
    return f" ({command[:80]})" if command else ""


def _is_locked(lock: Path) -> bool:
    try:
        import fcntl  # noqa: PLC0415 - not on Windows

        with lock.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return False
    return False


def _above_error(record: logging.LogRecord) -> bool:
    return record.levelno > logging.ERROR


def _above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    noisy = logging.getLogger(name)
    level = noisy.level
    noisy.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        noisy.setLevel(level)
