"""The home folder in words, for messages of a command that found nothing there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...modules.settings import Settings


def home_in_use(settings: Settings) -> str:
    """Return which home folder is used and why; of one that is missing, where it was looked for."""
    home = settings.home.absolute()
    if "home" in settings.model_fields_set:
        return f"Home: {home}, named by JUDGETREE_HOME{'' if home.is_dir() else '; it is not there yet'}"
    if home.is_dir():
        return f"Home: {home}, {'in this folder' if home.parent == Path.cwd() else 'the nearest above this folder'}"
    return f"Home: none yet; looked for {home.name} in {home.parent} and all folders above it"
