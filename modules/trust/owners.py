"""Whose a file or folder is, and whether what stands in it may be used unasked.

The rule is git's: what belongs to this user or to root may be used, unless anybody may write to it. On Windows, where
access lists close a user's folders to others, everything counts as this user's.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

SAFE_FOLDERS = "JUDGETREE_SAFE_FOLDERS"
"""Variable with the folders whose content is trusted, separated as in ``PATH``; ``*`` stands for all folders."""
_ROOT = 0
_MOST_LINKS = 40


def why_foreign(path: Path, *, holds_code: bool = False) -> str:
    """Return why a file or folder is not this user's, such as ``/x/.env belongs to ada (uid 1001)``; ``""`` if it is.

    A link is judged by itself and by what it leads to. What does not exist is not foreign.

    Args:
        path: The file or folder.
        holds_code: Whether Python looks for modules in the folder, so that the sticky bit of ``/tmp``, which protects
            the files that are there, does not help: anybody may add one.
    """
    if not hasattr(os, "geteuid") or is_named_safe(path):
        return ""
    for step in _steps(path):
        try:
            found = step.lstat()
        except OSError:
            return ""
        if found.st_uid not in _own_users():
            return f"{step} belongs to {_name_of(found.st_uid)}"
        if _is_open_to_all(found.st_mode, holds_code=holds_code):
            return f"anybody may write to {step}"
    return ""


def remedy_for(folder: Path) -> str:
    """Return what to do about a folder, or something in it, that is not this user's."""
    return (
        f"If you trust it, make it yours (chown, chmod o-w), or name the folder in the environment: "
        f"{SAFE_FOLDERS}={folder}"
    )


def is_named_safe(path: Path) -> bool:
    """Return whether a path is in one of the folders that the environment names as safe."""
    named = [each for each in os.environ.get(SAFE_FOLDERS, "").split(os.pathsep) if each]
    if "*" in named:
        return True
    here = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow a link that another user has made
    folders = [Path(each).expanduser() for each in named]
    return any(
        here.is_relative_to(each) or here.is_relative_to(each.resolve()) for each in folders if each.is_absolute()
    )


def owner_of(path: Path) -> str:
    """Return the name and number of a path's owner; ``""`` where the system has none, or the path does not exist."""
    if not hasattr(os, "geteuid"):
        return ""
    try:
        return _name_of(path.stat().st_uid)
    except OSError:
        return ""


def is_own(found: os.stat_result) -> bool:
    """Return whether a file's status names this process's user as its owner."""
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def _own_users() -> frozenset[int]:
    me = os.geteuid()
    behind = os.environ.get("SUDO_UID", "") if me == _ROOT else ""
    return frozenset({_ROOT, me, *([int(behind)] if behind.isdecimal() else [])})


def _steps(path: Path) -> list[Path]:
    """Return a path and, if it is a link, all that it leads to."""
    steps = [path]
    while steps[-1].is_symlink() and len(steps) < _MOST_LINKS:
        steps.append(steps[-1].parent / os.readlink(steps[-1]))  # noqa: PTH115 - as text, relative to the link
    return steps


def _is_open_to_all(rights: int, *, holds_code: bool) -> bool:
    if stat.S_ISLNK(rights) or not rights & stat.S_IWOTH:
        return False
    return holds_code or not (stat.S_ISDIR(rights) and rights & stat.S_ISVTX)


def _name_of(uid: int) -> str:
    import pwd  # noqa: PLC0415 - not on Windows

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"another user (uid {uid})"
