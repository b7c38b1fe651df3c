"""Exports of a package that are imported when they are first used, as its stub lists them."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from .errors import needs_extra


def lazy_exports(
    package: str, file: str, *, extra: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that exports what its ``__init__.pyi`` imports.

    Args:
        package: The package's ``__name__``.
        file: The package's ``__file__``; the stub is beside it.
        extra: The extra that an export may need. If it is not installed, ``__getattr__`` raises a
            ``DependencyError`` that names it.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: f".{node.module}" for node in imports for alias in node.names}
    names = sorted(homes)

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needs_extra(extra, what=f"{package}.{name}") if extra else nullcontext():
            home = importlib.import_module(homes[name], package)
            value = getattr(home, name, None) or importlib.import_module(f"{homes[name]}.{name}", package)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: names, names
