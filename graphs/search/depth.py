"""The deepest search that may be asked for, so that every tree can be drawn, sent and compared."""

from __future__ import annotations

from ...modules.errors import SettingsError

MAX_REC_DEPTH = 100
"""Most levels of sub-questions below the root, or rounds after the first."""


def check_depth(depth: object, *, name: str = "max_rec_depth") -> None:
    """Check a number of levels before anything is asked.

    >>> check_depth(3)

    Raises:
        SettingsError: It is no whole number from 0 to ``MAX_REC_DEPTH``.
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= MAX_REC_DEPTH:
        raise SettingsError(f"{name}={depth!r:.40} is not allowed. Give a whole number from 0 to {MAX_REC_DEPTH}.")
