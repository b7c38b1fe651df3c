"""Files and folders for their owner alone: 0600 and 0700 from the first byte, whatever the umask.

What exists keeps its mode, so that ``chmod`` stays the way to share a file with a group, except in a ``.judgetree``
that an older version left open (``close_home``). SQLite gives the files beside a database the mode of the database.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from .closed import FILE_MODE, close_all, is_open, make_closed
from .consent import trust

HOME_NAME = ".judgetree"


def private_folder(folder: Path) -> Path:
    """Return a folder, made with its missing parents for this user alone; an open ``.judgetree`` around it is closed.

    Raises:
        OSError: It cannot be made.
    """
    missing = make_closed(folder)
    home = next((each for each in (folder, *folder.parents) if each.name == HOME_NAME), None)
    if home in missing:
        with suppress(OSError):  # without a configuration, code that the home names asks for `judgetree trust`
            trust(home)
    elif home is not None:
        close_home(home)
    return folder


def private_file(file: Path) -> Path:
    """Return a file, made empty for this user alone if it is missing, in a private folder.

    Raises:
        OSError: It cannot be made.
    """
    private_folder(file.parent)
    if not file.exists():
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, FILE_MODE))
    return file


def close_home(home: Path) -> None:
    """Take the rights of others from a home folder of this user, and from all in it, if others can enter it.

    A home that others cannot enter is left as it is, so that this costs one ``stat``.
    """
    if is_open(home):
        close_all(home)
