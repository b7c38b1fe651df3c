"""The lock of a folder in which a process works: a run, or a recording."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import ReadWriteLock, Timeout

from ...modules.disk import refusing_full_disk
from ...modules.errors import LoadingError, SettingsError
from ...modules.reading.regular_files import read_regular

_MOST_BYTES = 1_000


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
        named = "another process"
        with suppress(OSError, LoadingError):
            named = read_regular(holder, max_bytes=_MOST_BYTES).decode("utf-8", "replace")
        raise SettingsError(f"{folder} is being worked in by {named}. {remedy}") from error
    try:
        with refusing_full_disk(holder):
            holder.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        lock.release()
        lock.close()
