"""Names of code in saved threads, which a home folder that came with a cloned folder may have brought along."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from .consent import is_trusted
from .owners import is_named_safe
from .private import HOME_NAME
from .usable import NotTrusted

_IMPORT_PATH = re.compile(r"([A-Za-z_]\w*)(?:\.\w+)*:[A-Za-z_]")


def check_saved_names(database: Path, texts: Iterable[str]) -> None:
    """Refuse names of code in the current folder that a database in an untrusted ``.judgetree`` has.

    Installed packages may be named by anyone; so may all code by a home that the environment names.

    Raises:
        NotTrusted: There is such a name; the message says what to do.
    """
    home = next((each for each in database.absolute().parents if each.name == HOME_NAME), None)
    if home is None or "JUDGETREE_HOME" in os.environ:
        return
    beside = next((text for text in texts if _names_code_here(text)), None)
    if beside is None or is_named_safe(home) or is_trusted(home):
        return
    raise NotTrusted(
        f"A thread saved in {home} names code of the current folder, {beside!r:.100}, and may have come with it. If "
        f"both are yours: judgetree trust {home.parent}. Or name the home in the environment: JUDGETREE_HOME={home}."
    )


def _names_code_here(text: str) -> bool:
    names = {match[1] for match in _IMPORT_PATH.finditer(str(text))}
    return any(Path(f"{name}.py").exists() or Path(name).is_dir() for name in names)
