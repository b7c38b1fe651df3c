"""Files and folders for their owner alone: 0600 and 0700 from the first byte, whatever the umask.

What exists keeps its mode, so that ``chmod`` stays the way to share a file with a group, except in a ``.judgetree``
that an older version left open (``close_home``). SQLite gives the files beside a database the mode of the database.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO, Any, Literal

from filelock import FileLock

from .owners import is_own

HOME_NAME = ".judgetree"
FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077
_EXECUTABLE = 0o111


def private_folder(folder: Path) -> Path:
    """Return a folder, made with its missing parents for this user alone; an open ``.judgetree`` around it is closed.

    Raises:
        OSError: It cannot be made.
    """
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    for each in reversed(missing):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)
    for each in (folder, *folder.parents):
        if each.name == HOME_NAME and each not in missing:
            close_home(each)
            break
    return folder


def user_folder(variable: str, default: str) -> Path:
    """Return the folder ``judgetree`` of the user's configuration or caches, which may be missing.

    Args:
        variable: The variable of the XDG convention that names the folder around it, such as ``XDG_CONFIG_HOME``.
        default: That folder without the variable, such as ``~/.config``.

    Raises:
        OSError: The user has no home folder.
    """
    named = Path(os.environ.get(variable, ""))
    try:
        return (named if named.is_absolute() else Path(default).expanduser()) / "judgetree"
    except RuntimeError as error:
        raise OSError(f"this user has no home folder: set {variable}") from error


def private_file(file: Path) -> Path:
    """Return a file, made empty for this user alone if it is missing, in a private folder.

    Raises:
        OSError: It cannot be made.
    """
    private_folder(file.parent)
    if not file.exists():
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, FILE_MODE))
    return file


def open_private(file: Path, mode: Literal["wb", "ab", "w"]) -> IO[Any]:
    """Open a file to write, for this user alone before its first byte; text is in UTF-8.

    Raises:
        OSError: It cannot be opened.
    """
    return open(file, mode, opener=_only_owner, encoding=None if "b" in mode else "utf-8")


def private_lock(file: Path, *, thread_local: bool = True, blocking: bool = True) -> FileLock:
    """Return the lock on a file that is made, when the lock is taken, for this user alone."""
    return FileLock(file, mode=FILE_MODE, thread_local=thread_local, blocking=blocking)


def lock_beside(file: Path) -> FileLock:
    """Return the lock on ``FILE.lock``, made with the file's mode, so that its users can take it."""
    try:
        mode = stat.S_IMODE(file.stat().st_mode) & ~_EXECUTABLE
    except OSError:
        mode = FILE_MODE
    return FileLock(file.with_name(f"{file.name}.lock"), mode=mode)


def close_home(home: Path) -> None:
    """Take the rights of others from a home folder of this user, and from all in it, if others can enter it.

    A home that others cannot enter is left as it is, so that this costs one ``stat``.
    """
    if is_open(home):
        close_all(home)


def close_all(folder: Path) -> None:
    """Take the rights of others from a folder and all in it that is this user's; links are left, and not followed."""
    _close(folder)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _close(Path(place, name))


def is_open(path: Path) -> bool:
    """Return whether others have any right to a file or folder of this user."""
    try:
        found = path.lstat()
    except OSError:
        return False
    is_mine = hasattr(os, "geteuid") and is_own(found) and not stat.S_ISLNK(found.st_mode)
    return is_mine and bool(found.st_mode & _OTHERS)


def _close(path: Path) -> None:
    if is_open(path):
        try:
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
        except OSError:  # deleted meanwhile, or a file system without modes
            return


def _only_owner(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, FILE_MODE)
    if hasattr(os, "fchmod") and is_own(found := os.fstat(descriptor)) and found.st_mode & _OTHERS:
        os.fchmod(descriptor, FILE_MODE)  # what a killed process has left
    return descriptor
