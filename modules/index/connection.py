"""Connections to Milvus: a Milvus Lite folder opened in this process, or a server by address."""

from __future__ import annotations

import functools
import logging
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast
from urllib.parse import urlsplit

from ..addresses import Address
from ..errors import MilvusFailure
from ..network.proxies import is_direct
from ..redaction import starred
from ..settings import load_settings
from .lite_folder import WAITING, OpenFolder, open_folder, release_folder

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


READ_TIMEOUT_S = 120.0
"""Seconds for a call that only reads; a server that was suspended, as by Ctrl-Z, would be waited for without end."""
_READS = ("describe_collection", "describe_index", "get", "has_collection", "list_collections", "query")


def explained(client: MilvusClient) -> MilvusClient:
    """Return a client that raises ``MilvusFailure`` for every error, and for a read that takes ``READ_TIMEOUT_S``."""
    return cast("MilvusClient", _ExplainedClient(client))


@contextmanager
def milvus_errors(action: str) -> Iterator[None]:
    """Raise errors of Milvus inside the block as "Milvus could not {action}".

    Raises:
        MilvusFailure: Milvus refused the call, or did not answer.
    """
    from grpc import RpcError  # noqa: PLC0415 - takes a second to import
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

        limits = {"timeout": READ_TIMEOUT_S} if name in _READS else {}

        @functools.wraps(found)
        def call(*args: object, **options: object) -> object:
            with milvus_errors(name.replace("_", " ")):
                return found(*args, **{**limits, **options})

        return call


CONNECT_TIMEOUT_S = 10.0
_LOOPBACK = re.compile(r"^(\w+://(localhost|127\.|\[::1\])|unix:)", re.IGNORECASE)
_MILVUS_PORT = 19530
_ADDRESS = re.compile(r"^(https?|tcp|unix):", re.IGNORECASE)


@dataclass(kw_only=True)
class MilvusConnection:
    """An open connection. Close it, since an open one keeps a Lite folder open."""

    uri: str
    """Address of a server, or absolute path of a Lite folder."""
    token: str = field(repr=False)
    client: MilvusClient
    """A client that raises ``MilvusFailure`` for every failed call."""
    is_lite: bool
    """True for Lite's engine, embedded or behind ``milvus-lite server``."""
    opened: OpenFolder | None = None
    """The Lite folder, served by this or another process of this user; None for a server."""
    closed: bool = False

    @property
    def folder(self) -> Path | None:
        """The path of the Lite folder; None for a server."""
        return None if self.opened is None else self.opened.path

    @property
    def address(self) -> str:
        """The address for further clients."""
        return self.uri if self.opened is None else self.opened.address

    def close(self) -> None:
        """Close the client; the last connection of this process to a Lite folder also frees its lock."""
        if self.closed:
            return
        self.closed = True
        self.client.close()
        if self.opened is not None:
            release_folder(self.opened)


def connect(uri: str | None, token: str | None = "") -> MilvusConnection:
    """Open a Milvus Lite folder (``….db``, created if missing) or connect to a server; None takes the setting.

    User and password in an address replace an empty token.

    Raises:
        CollectionError: The address is malformed or does not answer, or the folder is not Lite's, or held by a process
            that does not share it.
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
        raise MilvusFailure(
            f"No Milvus server can be used at {address} ({starred(error.message, secrets)}). Check that it runs and "
            f"the token is right, or unset JUDGETREE_MILVUS_URI to use the embedded Milvus Lite.{_grpc_proxy(uri)}"
        ) from error


class ClientArguments(TypedDict, total=False):
    """Keyword arguments of ``MilvusClient``."""

    uri: str
    token: str
    grpc_options: dict[str, int | str]


def client_arguments(uri: str, token: str) -> ClientArguments:
    """Return the arguments for all Milvus clients of a connection."""
    if is_address(uri) and not _LOOPBACK.match(uri):
        direct = {"grpc_options": _DIRECT} if _is_direct(uri) else {}
        return {"uri": str(uri), "token": token, **direct}  # type: ignore[typeddict-item]
    # pymilvus pings an idle connection every ten seconds, and Lite closes connections with frequent pings.
    options: dict[str, int | str] = {"grpc.keepalive_time_ms": 2**31 - 1, **(_DIRECT if _is_direct(uri) else {})}
    waiting = WAITING if uri.startswith("unix:") else {}
    return {"uri": str(uri), "token": token, "grpc_options": {**options, **waiting}}


_DIRECT: dict[str, int | str] = {"grpc.enable_http_proxy": 0}
"""gRPC takes proxies by its own rules (``grpc_proxy``, ``https_proxy``, ``http_proxy``), this machine included."""
_GRPC_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")


def _is_direct(uri: str) -> bool:
    """Return whether a server is asked without a proxy, by the rules that hold for HTTP."""
    parts = urlsplit(uri)
    return not parts.hostname or is_direct(parts.hostname, parts.port or _MILVUS_PORT)


def _grpc_proxy(uri: str) -> str:
    """Return a sentence about the proxy of gRPC that a server is asked through, behind a space; ``""`` without one."""
    name = next((name for name in _GRPC_PROXIES if os.environ.get(name)), "")
    if not name or _is_direct(uri):
        return ""
    shown = Address(os.environ[name])
    return f" It is asked through the proxy {shown} ({name}): add its host to NO_PROXY to ask it directly."


def is_lite(client: MilvusClient) -> bool:
    """Return whether Milvus Lite answers: its BM25 scores are negative, and it counts words by segment."""
    return str(client.get_server_version()).startswith("milvus_lite")


def database_exists(uri: str) -> bool:
    """Return whether there may be a database; False for a Milvus Lite folder that does not exist yet."""
    return is_address(uri) or not uri.endswith(".db") or Path(uri).expanduser().exists()


def is_address(uri: str) -> bool:
    """Return whether a URI is a server's address rather than the path of a Lite folder."""
    return bool(_ADDRESS.match(uri))


def _open_folder(uri: str) -> MilvusConnection:
    from pymilvus import MilvusClient  # noqa: PLC0415 - takes a second to import

    folder = open_folder(uri)
    try:
        client = MilvusClient(**client_arguments(folder.address, ""))
    except BaseException:
        release_folder(folder)
        raise
    return MilvusConnection(uri=str(folder.path), token="", client=explained(client), is_lite=True, opened=folder)


def _above_error(record: logging.LogRecord) -> bool:
    return record.levelno > logging.ERROR


def _above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG
