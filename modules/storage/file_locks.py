"""Locks on files and folders between processes, and who holds one; a lock ends with its process."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import JudgetreeError, LoadingError, SettingsError
from ..reading.regular_files import read_regular
from ..settings import without_secrets
from ..trust.closed import FILE_MODE
from .write_errors import refusing_full_disk

_EXECUTABLE = 0o111
_MOST_HOLDER_BYTES = 1_000


def private_lock(file: Path, *, thread_local: bool = True, blocking: bool = True) -> FileLock:
    """Return the lock on a file that is made, when the lock is taken, for this user alone."""
    return FileLock(file, mode=FILE_MODE, thread_local=thread_local, blocking=blocking)


def lock_beside(file: Path) -> FileLock:
    """Return the lock on ``FILE.lock``, made with the file's mode, so that its users can take it."""
    try:
        rights = stat.S_IMODE(file.stat().st_mode) & ~_EXECUTABLE
    except OSError:
        rights = FILE_MODE
    return FileLock(file.with_name(f"{file.name}.lock"), mode=rights)


@contextmanager
def hold_lock(
    file: Path, *, wait_s: float, on_wait: Callable[[str], None], busy: Callable[[str], JudgetreeError]
) -> Iterator[None]:
    """Hold the lock on a file, whose folder exists, inside the block.

    Args:
        file: Made if it does not exist, and left.
        wait_s: Most seconds to wait for another holder; 0 fails at once.
        on_wait: Called once with another holder's name.
        busy: Makes the error for a holder who did not finish in time, from its name.

    Raises:
        JudgetreeError: The one that ``busy`` makes.
    """
    lock = private_lock(file, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        holder = lock_holder(file) or "another process"
        if f"{holder} ".startswith(f"process {os.getpid()} "):
            holder = "another thread of this process"
        on_wait(holder)
        try:
            lock.acquire(timeout=wait_s)
        except Timeout as error:
            raise busy(holder) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lock_folder(folder: Path, *, remedy: str) -> Iterator[None]:
    """Hold the lock of a folder in which one process works at a time; the folder is made if it is missing.

    Args:
        folder: The folder.
        remedy: What the message advises, in whole sentences.

    Raises:
        SettingsError: Another process holds the lock; the message names it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / "run.lock.holder"
    lock = FileLock(folder / "run.lock", thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        named = "another process"
        with suppress(OSError, LoadingError):
            named = read_regular(holder, max_bytes=_MOST_HOLDER_BYTES).decode("utf-8", "replace")
        raise SettingsError(f"{folder} is being worked in by {named}. {remedy}") from error
    try:
        with refusing_full_disk(holder):
            holder.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        lock.release()


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
    command = without_secrets(" ".join(" ".join([Path(words[0]).name, *words[1:3]]).split()))
    return f" ({command[:80]})" if command else ""


def is_locked(lock: Path) -> bool:
    """Return whether a process holds a lock on a file; False where this cannot be seen."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows

        with lock.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return False
    return False
