"""Consent to what a folder brings along: its ``.env`` with the content that it has now, and its home folder.

A consent is a file of its own in the user's configuration (``$XDG_CONFIG_HOME/judgetree/trusted``), named by the path,
so that two commands at once lose none. One to a ``.env`` is void as soon as the content changes. A home folder that
judgetree has made here is trusted from the start; one that a copied or cloned folder brought along is not.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from .closed import make_closed, open_private, user_folder
from .env_file import EnvFile
from .owners import why_foreign


@dataclass(frozen=True, kw_only=True)
class Consent:
    """A file or folder that may be used, as it was then."""

    path: str
    content: str
    """``sha256:`` and the digest of a file; ``inode:`` and the numbers of device and inode of a folder."""


def consent_to(what: EnvFile | Path) -> Consent:
    """Return the consent that a ``.env``, or a home folder, needs as it is now.

    Raises:
        OSError: There is no such folder.
    """
    if isinstance(what, EnvFile):
        return Consent(path=str(what.path), content=f"sha256:{what.digest}")
    found = what.resolve().stat()
    return Consent(path=str(what.resolve()), content=f"inode:{found.st_dev}:{found.st_ino}")


def is_trusted(what: EnvFile | Path) -> bool:
    """Return whether this user has consented to a ``.env`` or home folder as it is now."""
    try:
        wanted = consent_to(what)
        return _read(_record_of(wanted.path)) == wanted
    except OSError:
        return False


def trust(what: EnvFile | Path) -> Consent:
    """Keep the consent to a ``.env`` or home folder as it is now, in place of an earlier one.

    Raises:
        OSError: It cannot be written.
    """
    consent = consent_to(what)
    record = _record_of(consent.path)
    make_closed(record.parent)
    half = record.with_suffix(f".{os.getpid()}")
    with open_private(half, "w") as stream:
        stream.write(json.dumps(asdict(consent)))
    half.replace(record)
    return consent


def revoke(path: Path) -> bool:
    """Take the consent to a ``.env`` or home folder back; False if there was none.

    Raises:
        OSError: It cannot be deleted.
    """
    try:
        _record_of(str(path.resolve())).unlink()
    except FileNotFoundError:
        return False
    return True


def consents() -> list[Consent]:
    """Return all consents of this user, by path."""
    found = (_read(record) for record in _consents_folder().glob("*.json"))
    return sorted((each for each in found if each is not None), key=lambda each: each.path)


def _read(record: Path) -> Consent | None:
    if why_foreign(record) or why_foreign(record.parent):
        return None
    with suppress(OSError, ValueError, TypeError):
        return Consent(**json.loads(record.read_text(encoding="utf-8")))
    return None


def _record_of(path: str) -> Path:
    return _consents_folder() / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def _consents_folder() -> Path:
    return user_folder("XDG_CONFIG_HOME", "~/.config") / "trusted"
