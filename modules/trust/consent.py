"""Consent to a ``.env``: for its folder, and for the content that it has now.

A consent is a file of its own in the user's configuration (``$XDG_CONFIG_HOME/judgetree/trusted``), named by its
folder, so that two commands at once lose none. It is void as soon as the content changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from .env_file import EnvFile
from .owners import why_foreign
from .private import open_private, private_folder, user_folder


@dataclass(frozen=True, kw_only=True)
class Consent:
    """One folder, and the content of its ``.env`` that may be used."""

    folder: str
    sha256: str


def is_trusted(file: EnvFile) -> bool:
    """Return whether this user has consented to the present content of a file in its folder."""
    try:
        kept = _read(_record_of(file.folder))
    except OSError:
        return False
    return kept == Consent(folder=str(file.folder), sha256=file.digest)


def trust(file: EnvFile) -> None:
    """Keep the consent to the present content of a file, in place of an earlier one for its folder.

    Raises:
        OSError: It cannot be written.
    """
    record = _record_of(file.folder)
    private_folder(record.parent)
    half = record.with_suffix(f".{os.getpid()}")
    with open_private(half, "w") as stream:
        stream.write(json.dumps(asdict(Consent(folder=str(file.folder), sha256=file.digest))))
    half.replace(record)


def revoke(folder: Path) -> bool:
    """Take the consent for a folder back; False if there was none.

    Raises:
        OSError: It cannot be deleted.
    """
    try:
        _record_of(folder.resolve()).unlink()
    except FileNotFoundError:
        return False
    return True


def consents() -> list[Consent]:
    """Return all consents of this user, by folder."""
    found = (_read(record) for record in _consents_folder().glob("*.json"))
    return sorted((each for each in found if each is not None), key=lambda each: each.folder)


def _read(record: Path) -> Consent | None:
    if why_foreign(record) or why_foreign(record.parent):
        return None
    with suppress(OSError, ValueError, TypeError):
        return Consent(**json.loads(record.read_text(encoding="utf-8")))
    return None


def _record_of(folder: Path) -> Path:
    return _consents_folder() / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.json"


def _consents_folder() -> Path:
    return user_folder("XDG_CONFIG_HOME", "~/.config") / "trusted"
