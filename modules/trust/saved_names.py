"""Names of code and addresses that a home folder holds, which may have come along with a cloned folder."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .consent import is_trusted
from .owners import is_named_safe
from .private import HOME_NAME
from .usable import NotTrusted

_IMPORT_PATH = re.compile(r"(?<![\w.])([A-Za-z_]\w*+)(?:\.\w++)*+:[A-Za-z_]")
_MOST_BYTES = 16_000_000
_SCHEMAS = ("collections/*/schema.json", "databases/*/collections/*/schema.json")


def check_saved_names(database: Path, texts: Iterable[str]) -> None:
    """Refuse names of code in the current folder that a database in an untrusted ``.judgetree`` has.

    Installed packages may be named by anyone; so may all code by a home that the environment names.

    Raises:
        NotTrusted: There is such a name; the message says what to do.
    """
    beside = next((text for text in texts if _names_code_here(str(text))), None)
    if beside is not None and (home := _untrusted_home(database)) is not None:
        raise NotTrusted(f"A thread saved in {home} names code of the current folder, {beside!r:.100}. {_remedy(home)}")


def check_saved_addresses(lite_folder: Path) -> None:
    """Refuse a Milvus Lite folder in an untrusted ``.judgetree`` that has a collection which embeds by an address.

    Milvus Lite would send texts there, with the key ``OPENAI_API_KEY`` of the environment.

    Raises:
        NotTrusted: There is such a collection; the message says what to do.
    """
    home = _untrusted_home(lite_folder)
    if home is None:
        return
    for schema in (each for pattern in _SCHEMAS for each in lite_folder.glob(pattern)):
        if _cannot_be_read(schema):
            raise NotTrusted(f"{schema} is no file, or larger than {_MOST_BYTES:,} bytes. {_remedy(home)}")
        if address := _address_in(schema):
            raise NotTrusted(
                f"The collection in {schema.parent} has its texts embedded at {address!r:.200}. {_remedy(home)}"
            )


def _untrusted_home(path: Path) -> Path | None:
    """Return the ``.judgetree`` around a path if it was found, not named, and this user has not consented to it."""
    home = next((each for each in path.absolute().parents if each.name == HOME_NAME), None)
    if home is None or os.environ.get("JUDGETREE_HOME") or is_named_safe(home) or is_trusted(home):
        return None
    return home


def _remedy(home: Path) -> str:
    return (
        f"It may have come with the folder. If you trust both: judgetree trust {home.parent}. Or name the home in the "
        f"environment: JUDGETREE_HOME={home}."
    )


def _names_code_here(text: str) -> bool:
    names = {match[1] for match in _IMPORT_PATH.finditer(text)}
    return any(Path(f"{name}.py").exists() or Path(name).is_dir() for name in names)


def _cannot_be_read(schema: Path) -> bool:
    """Return whether reading would wait, as a FIFO does, or take all memory; a file that is gone is neither."""
    try:
        found = schema.stat()
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES


def _address_in(schema: Path) -> str:
    with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):  # Lite says what is wrong with it
        functions = json.loads(schema.read_bytes()).get("functions") or ()
        return next((str(each["params"]["base_url"]) for each in functions if "base_url" in (each["params"] or {})), "")
    return ""
