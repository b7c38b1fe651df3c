"""Files that arrive as an upload: their names, and what they unpack to."""

from __future__ import annotations

import unicodedata
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ....modules.index.file_parsers import PARSERS
from ....modules.storage.texts import is_storable
from ..serving.errors import ApiError

MAX_NAME_BYTES = 250
"""Most bytes of a name as UTF-8: file systems take 255."""
MAX_ZIP_PARTS = 10_000
_ZIPPED = frozenset({".docx"})
_ZIP_PART = b"PK\x01\x02"
"""Begins each entry in the directory of a zip file."""
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{name}{digit}" for name in ("com", "lpt") for digit in "0123456789¹²³"}
)
_NOT_IN_NAMES = frozenset('<>:"|?*')
"""Characters that Windows refuses, or takes for a stream of another file."""


def file_names(sent: Sequence[str]) -> list[str | ApiError]:
    """Return the names under which files are kept; what stands before the last slash or backslash is left out.

    In place of a name that cannot be kept, has an unknown type, or is that of a file before it, stands the refusal
    (HTTP 422).

    >>> file_names(["../../etc/hosts.txt", "C:\\\\papers\\\\norm.pdf"])
    ['hosts.txt', 'norm.pdf']
    """
    names: list[str | ApiError] = []
    seen: set[str] = set()
    for each in sent:
        try:
            name = _file_name(each)
            if (same := name.casefold()) in seen:
                raise _refused(f"Two files are called {name!r}. Send one of them, or rename it.")
            seen.add(same)
            names.append(name)
        except ApiError as error:
            names.append(error)
    return names


def check_unpacked(path: Path, name: str, *, max_bytes: int) -> None:
    """Refuse a zipped document that unpacks to too much, before unpacking anything.

    The sizes are those of its directory, which also limits what unpacking a part gives.

    Raises:
        ApiError: HTTP 413, 422: it is too large, or no such document.
    """
    if PurePosixPath(name).suffix.lower() not in _ZIPPED:
        return
    if path.read_bytes().count(_ZIP_PART) > MAX_ZIP_PARTS:  # each would be an object in memory
        raise _too_large(f"{name!r} has more than {MAX_ZIP_PARTS:,} parts.")
    try:
        with zipfile.ZipFile(path) as parts:
            size = sum(part.file_size for part in parts.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        raise _refused(f"{name!r} is no Word document. Save it as one.") from None
    if size > max_bytes:
        raise _too_large(f"{name!r} unpacks to {size:,} bytes; allowed are {max_bytes:,}.")


def _file_name(sent: str) -> str:
    name = unicodedata.normalize("NFC", sent.replace("\\", "/").rpartition("/")[2])
    if problem := _problem(sent, name):
        raise _refused(f"The file name {sent!r:.300} {problem}. Rename the file.")
    if PurePosixPath(name).suffix.lower() not in PARSERS:
        known = ", ".join(suffix[1:] for suffix in PARSERS)
        raise _refused(f"The type of {name!r} cannot be read. Allowed: {known}.", code="unknown_file_type")
    return name


def _problem(sent: str, name: str) -> str:
    """Return why a name cannot be kept; ``""`` if it can."""
    if not is_storable(sent) or any(unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") for letter in name):
        return "has characters that cannot be seen"
    if not name.strip(". ") or name in (".", ".."):
        return "is empty"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"has more than {MAX_NAME_BYTES} bytes"
    if name.startswith(".") or name != name.strip() or not _NOT_IN_NAMES.isdisjoint(name):
        return "begins with a dot, has spaces at an end, or one of " + " ".join(sorted(_NOT_IN_NAMES))
    return "is that of a device" if name.split(".", maxsplit=1)[0].strip().casefold() in _DEVICES else ""


def _refused(message: str, *, code: str = "file_refused") -> ApiError:
    return ApiError(422, message, param="files", code=code)


def _too_large(message: str) -> ApiError:
    return ApiError(413, message, param="files", code="file_too_large")
