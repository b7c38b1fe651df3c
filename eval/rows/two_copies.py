"""Small JSON files beside large data, kept in two copies: a damaged one is read and repaired from the other."""

from __future__ import annotations

import logging
from pathlib import Path

from ...modules.errors import LoadingError
from ...modules.reading.regular_files import read_named, read_named_json
from ...modules.storage.atomic import write_atomic

logger = logging.getLogger(__name__)


def copy_of(path: Path) -> Path:
    """Return the file of the second copy.

    >>> copy_of(Path("manifest.json")).name
    'manifest.copy.json'
    """
    return path.with_name(f"{path.stem}.copy{path.suffix}")


def write_twice(path: Path, text: str) -> None:
    """Replace a file and its copy atomically, one after the other.

    Raises:
        WritingError: The disk is full, or a file cannot be written; it is unchanged.
    """
    for each in (path, copy_of(path)):
        write_atomic(each, text)


def read_either(path: Path, *, what: str, advice: str) -> object | None:
    """Return what a JSON file holds, or its copy where the file is missing, empty or damaged; None without either.

    Raises:
        LoadingError: Neither can be read; the message calls the file ``what`` and ends in ``advice``.
    """
    copy = copy_of(path)
    if not path.exists() and not copy.exists():
        return None
    try:
        return read_named_json(path, what=what, advice=advice)
    except LoadingError as error:
        if not copy.exists():
            raise
        try:
            content = read_named_json(copy, what="the copy", advice=advice)
        except LoadingError:
            raise error from None
        logger.warning("%s Its copy %s is used.", str(error).removesuffix(advice).strip(), copy)
        return content


def mend_from_copy(path: Path) -> None:
    """Write a file that is missing or damaged over from its copy, if there is one that can be read."""
    copy = copy_of(path)
    if not copy.exists():
        return
    try:
        read_named_json(path, what="", advice="")
    except LoadingError:
        try:
            read_named_json(copy, what="", advice="")
        except LoadingError:
            return  # reading says what to do
        write_atomic(path, read_named(copy, what="", advice=""))
