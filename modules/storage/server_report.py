"""What the server of a store says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServerReport:
    """What the server of a store says of itself."""

    detail: str
    """Name, version, and how it keeps data."""
    warnings: tuple[str, ...] = ()
    """What may lose data, with what to do."""
