"""The lock of a folder in which a process works: a run, or a recording."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import ReadWriteLock, Timeout

from ...modules.disk import refusing_full_disk
from ...modules.errors import SettingsError


@contextmanager
def held_folder(folder: Path, *, remedy: str) -> Iterator[None]:
    """Lock a folder, created if missing, for this process.

    Args:
        folder: The folder.
        remedy: What the message advises, in whole sentences.

    Raises:
        SettingsError: Another process holds the lock; the message names it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / "run.lock.holder"
    # filelock's default is one lock for a path and process, but two runs of one process exclude each other too.
    lock = ReadWriteLock(folder / "run.lock", timeout=0, is_singleton=False)
    try:
        lock.acquire_write()
    except Timeout as error:
        named = holder.read_text(encoding="utf-8") if holder.exists() else "another process"
        raise SettingsError(f"{folder} is being worked in by {named}. {remedy}") from error
    try:
        with refusing_full_disk(holder):
            holder.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        lock.release()
        lock.close()
