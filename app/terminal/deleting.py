"""What commands do before they delete or overwrite: they say what and how much, and ask."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from ...graphs.drawing.words import count_of
from .terminal import agrees, say

_NAMES_SHOWN = 10


def may_delete(what: str, question: str, *, yes: bool, dry_run: bool, asks_scripts: bool = True) -> bool:
    """Say what is about to be deleted, and return whether to do so: never in a dry run, always with ``yes``.

    Otherwise a terminal is asked. Without one, ``yes`` is needed; commands that scripts have always called without it
    set ``asks_scripts`` to False.

    Raises:
        SettingsError: Standard input is no terminal, and ``yes`` is missing.
    """
    say(f"{'would delete' if dry_run else 'about to delete'}: {what}", style="yellow")
    if dry_run:
        return False
    if yes or not (asks_scripts or sys.stdin.isatty()) or agrees(question):
        return True
    say("Nothing was deleted.")
    return False


def files_text(collection: str, files: Mapping[str, int]) -> str:
    """Return how many files and chunks are taken out of a collection, and the names of files."""
    sizes = f"{count_of(len(files), 'file')} with {count_of(sum(files.values()), 'chunk')}"
    return f"{sizes} from the collection {collection}, not from the disk: {names_text(list(files))}"


def names_text(names: Sequence[str]) -> str:
    """List names, ten at most, and how many more there are."""
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(names[:_NAMES_SHOWN])}{more}"
