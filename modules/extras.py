"""Packages that come with an extra of judgetree, where they are imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import DependencyError


@contextmanager
def needs_extra(extra: str, *, what: str = "This") -> Iterator[None]:
    """Around an import: what is missing is told with the extra that brings it. ``what`` begins the message.

    Raises:
        DependencyError: A package is not installed. Modules of judgetree itself belong to no extra: one that is
            missing stays a ``ModuleNotFoundError``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == __name__.partition(".")[0]:
            raise
        raise DependencyError(
            f"{what} needs the package {error.name}. Run: pip install 'judgetree[{extra}]'"
        ) from error
