"""Locks between the processes that share a folder: a locked file each, until the lock is freed or its process ends."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ..digests import text_digest
from ..errors import StoreFailure, reason_of
from ..storage.file_locks import private_lock
from ..trust.private import private_folder
from .locks import Holder, Locks


class FileLocks(Locks):
    """A locked file for each held lock, in a folder that is made for them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._held: dict[str, FileLock] = {}

    async def take(self, name: str, holder: Holder) -> bool:
        """Take a lock by its file, made if it is missing, as ``Locks.take`` says."""
        lock = private_lock(self._folder / f"{text_digest(name).hex()[:32]}.lock", blocking=False, thread_local=False)
        try:
            private_folder(self._folder)
            lock.acquire()
        except Timeout:
            return False
        except OSError as error:
            raise StoreFailure(
                f"No lock can be made in the folder {str(self._folder)!r}: {reason_of(error)}. Make it writable, "
                "or set JUDGETREE_CHECKPOINTS to a database in a folder that is."
            ) from error
        self._held[name] = lock
        return True

    async def free(self, name: str, holder: Holder) -> None:
        """Free the lock and delete its file, as ``Locks.free`` says."""
        _delete_and_release(self._held.pop(name))


def _delete_and_release(lock: FileLock) -> None:
    # In this order: a process that has opened the file meanwhile sees that it is gone, and makes another.
    with suppress(OSError):  # Windows removes no open file
        Path(lock.lock_file).unlink()
    lock.release()
