"""Files of installed packages, found without importing the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def installed_file(package: str, path: str) -> Path | None:
    """Return a file of an installed package, without importing the package; None if there is none."""
    spec = importlib.util.find_spec(package)
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return next((file for folder in folders if (file := Path(folder) / path).is_file()), None)
