"""Locks on files: who holds one, and holding one that another process may have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import Timeout

from ..errors import JudgetreeError
from ..settings import without_secrets
from ..trust.private import private_lock


@contextmanager
def holding(
    file: Path, *, wait_s: float, on_wait: Callable[[str], None], busy: Callable[[str], JudgetreeError]
) -> Iterator[None]:
    """Hold the lock on a file, whose folder exists; it ends with its process.

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
