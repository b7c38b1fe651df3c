"""Ray: worker processes on this machine, or those of a cluster."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import SettingsError, UserError, needs_extra
from .quiet_libraries import keep_libraries_quiet

if TYPE_CHECKING:
    from types import ModuleType

logger = logging.getLogger(__name__)

HERE = "local"
"""The address of a Ray that is started for one command on this machine, and ended with it."""
_HEAD = """
import logging, os, shutil, sys
logging.disable(logging.WARNING)
import ray
options = {"include_dashboard": False, "log_to_driver": False, "_temp_dir": sys.argv[2]}
node = ray.init(address="local", num_cpus=int(sys.argv[1]), **options)
print(node.address_info["gcs_address"], flush=True)
sys.stdin.read()
ray.shutdown()
shutil.rmtree(os.path.dirname(sys.argv[2]), ignore_errors=True)  # a driver that was killed leaves it
"""
_WHAT = "Work on several processes"
_CONNECTING_S = 10.0
_ENDING_S = 20.0
_TOKEN = secrets.token_hex(32)
"""One for each process: Ray reads it once."""


def check_installed() -> None:
    """Check that Ray is installed, without loading it.

    Raises:
        DependencyError: The extra ``ray`` is not installed.
    """
    with needs_extra("ray", what=_WHAT):
        if importlib.util.find_spec("ray") is None:
            raise ModuleNotFoundError(name="ray")


@contextlib.contextmanager
def connected(address: str, *, workers: int) -> Iterator[ModuleType]:
    """Connect this process to Ray, for the block; gives the package ``ray``.

    ``local`` starts a Ray with as many cores as ``workers``, without a dashboard, which ends with the block or with
    this process, however it ends. Any other address is that of a running cluster, which stays: ``auto``, ``HOST:PORT``
    or ``ray://HOST:PORT``. Nothing is reported to Ray's makers. A process that is connected already, such as a
    notebook's, stays so.

    Raises:
        DependencyError: The extra ``ray`` is not installed.
        SettingsError: There is no cluster at the address, or Ray does not start here.
        UserError: The Ray that was started here has ended, and so the block fails.
    """
    keep_libraries_quiet()
    with needs_extra("ray", what=_WHAT):
        import ray  # noqa: PLC0415 - an optional extra
    if ray.is_initialized():
        yield ray
        return
    with contextlib.ExitStack() as closing:
        if address == HERE:
            closing.enter_context(_own_token(ray))
        found = closing.enter_context(_head(workers)) if address == HERE else address
        try:
            if address != HERE:
                _check_reachable(ray, address)
            ray.init(address=found, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            raise SettingsError(
                f"Ray cannot be reached at {address!r}: {str(error).rstrip('.')}. Start a node (ray start --head), or "
                "leave out --ray and give --workers N for this machine."
            ) from error
        closing.callback(ray.shutdown)
        closing.enter_context(_quiet_about_deaths(ray))
        yield ray


@contextlib.contextmanager
def _quiet_about_deaths(ray: ModuleType) -> Iterator[None]:
    """Log what Ray says about dead workers and nodes, which it prints to standard output, among our results."""
    worker = ray._private.worker
    before = worker.print_to_stdstream
    worker.print_to_stdstream = lambda data, **options: logger.info("Ray: %s", " ".join(data["lines"])[:500])
    try:
        yield
    finally:
        worker.print_to_stdstream = before


def _check_reachable(ray: ModuleType, address: str) -> None:
    """Check that something listens at HOST:PORT, for which Ray itself would wait for minutes.

    Raises:
        OSError: Nothing does within ten seconds, or ``auto`` finds no cluster.
        ValueError: The address is empty, with which Ray would start one inside this process.
    """
    if not address:
        raise ValueError("the address is empty")
    if address == "auto":  # may be that of a cluster that has ended
        address = ray._private.services.get_ray_address_from_environment(address, None)
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECTING_S).close()


@contextlib.contextmanager
def _own_token(ray: ModuleType) -> Iterator[None]:
    """Let only this process and those that it starts connect to the Ray that it starts."""
    given = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _TOKEN}
    before = {name: os.environ.get(name) for name in given}
    refresh = ray._raylet.Config.initialize  # Ray reads these variables once, when it is imported
    os.environ.update(given)
    refresh("")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        refresh("")


@contextlib.contextmanager
def _head(workers: int) -> Iterator[str]:
    """Run a Ray with a process of its own at its head, and give its address.

    Not in this process: Ray forks, and a fork of a process with open Milvus connections may hang. The head ends as soon
    as its standard input does.
    """
    short = "/tmp" if Path("/tmp").is_dir() else None  # Ray's sockets need short paths
    with (
        tempfile.TemporaryDirectory(prefix="judgetree-ray-", dir=short, ignore_cleanup_errors=True) as folder,
        Path(folder, "said").open("w+", encoding="utf-8") as said,
    ):
        # Ray lets every user into the folder that it is given, with the socket of what it sends to workers, keys
        # included; nobody else gets through the one around it.
        command = [sys.executable, "-c", _HEAD, str(workers), str(Path(folder, "r"))]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said, text=True, start_new_session=True) as head:
            assert head.stdin is not None and head.stdout is not None
            try:
                address = head.stdout.readline().strip()
                if not address:
                    _kill_all(head)  # what it has begun before it ended
                    said.seek(0)
                    reason = " ".join(said.read().split())[-500:] or "its head was killed"
                    raise SettingsError(f"Ray does not start on this machine: {reason}")
                with _watched(head, folder):
                    yield address
            finally:
                head.stdin.close()
                try:
                    head.wait(timeout=_ENDING_S)
                except subprocess.TimeoutExpired:
                    _kill_all(head)


@contextlib.contextmanager
def _watched(head: subprocess.Popen[str], folder: str) -> Iterator[None]:
    """End what a head leaves behind that is killed in the block, and raise an error of the block as one that says so.

    Ray ends this process, without an exception, if a call of the head takes a minute, so the folder goes at once.

    Raises:
        UserError: The head was killed, and so the block failed.
    """
    is_over = threading.Event()

    def clear_up() -> None:
        head.wait()
        if not is_over.is_set():
            _kill_all(head)
            shutil.rmtree(folder, ignore_errors=True)
            logger.warning("The head of Ray, process %d, was killed; this command ends within a minute.", head.pid)

    watching = threading.Thread(target=clear_up, name="head of Ray", daemon=True)
    watching.start()
    try:
        yield
    except Exception as error:
        if head.poll() is None:
            raise
        watching.join()
        raise UserError(
            f"The Ray of this command has ended, since its head, process {head.pid}, was killed: by hand, or for want "
            "of memory. What is finished is kept; run the same command again."
        ) from error
    finally:
        is_over.set()


def _kill_all(head: subprocess.Popen[str]) -> None:
    """Kill the head and what it has started, which is in its group; workers end with the raylet there."""
    if not hasattr(os, "killpg"):  # Windows
        head.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(head.pid, signal.SIGKILL)
