"""Files and folders that are closed to others: made so from their first byte, or closed afterwards."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO, Any, Literal

from .owners import is_own

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077


def make_closed(folder: Path) -> list[Path]:
    """Make a folder and its missing parents for this user alone; returns those that were missing, innermost first.

    Raises:
        OSError: It cannot be made.
    """
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    for each in reversed(missing):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)
    return missing


def open_private(file: Path, how: Literal["wb", "w"]) -> IO[Any]:
    """Open a file to write, for this user alone before its first byte; text is in UTF-8.

    Raises:
        OSError: It cannot be opened.
    """
    return open(file, how, opener=_only_owner, encoding=None if "b" in how else "utf-8")


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
