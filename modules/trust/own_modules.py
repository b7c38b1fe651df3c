"""Imports of a user's own modules, which are looked for in the working directory too."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from .owners import remedy_for, why_foreign


def import_own(module: str) -> ModuleType:
    """Import a module; of the working directory only what is this user's.

    A folder to which anybody may write is not searched, even ``/tmp`` with its sticky bit: all that is imported later
    would be looked for there too.

    Raises:
        ImportError: There is no such module, or it belongs to another user, and has not run.
    """
    here = Path.cwd()
    why = why_foreign(here, holds_code=True)
    if not why and str(here) not in sys.path and "" not in sys.path:  # a console script does not look there
        sys.path.append(str(here))
    try:
        names = module.split(".")
        for end in range(1, len(names) + 1):
            _check_owner(".".join(names[:end]), here)
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not why or names[0] != error.name:
            raise
        raise ModuleNotFoundError(
            f"{error}; the current folder is not searched, since {why}. {remedy_for(here)}", name=error.name
        ) from error


def _check_owner(module: str, here: Path) -> None:
    """Refuse a module in the working directory that is not this user's; packages of this Python may be."""
    spec = None if module in sys.modules else importlib.util.find_spec(module)
    file = Path(spec.origin) if spec is not None and spec.origin else None
    if file is None or not file.is_relative_to(here) or file.is_relative_to(sys.prefix):
        return
    between = (folder for folder in file.parents if folder.is_relative_to(here))
    whys = (why_foreign(file), *(why_foreign(folder, holds_code=True) for folder in between))
    if why := next(filter(None, whys), ""):
        raise ImportError(f"{why}. {remedy_for(here)}")
