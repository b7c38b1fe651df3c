"""Who holds a lock on a file."""

from __future__ import annotations

from pathlib import Path

from ..settings import without_secrets


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
