"""Wider: best first, and a needed chunk whose sub-run brought nothing is asked on again in other words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ..candidate import Expansion
from .again import Again


@dataclass(frozen=True, kw_only=True)
class Wider(Again):
    """Chooses as ``Again``, and asks a further question about a chunk until one has found a needed chunk."""

    name = "wider"

    least: Annotated[float, Field(ge=0, le=1)] = 0.5
    """P(needed) of a chunk, 1/2 where the judge gives none, from which on the try that found it brought something."""

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        """Return True while tries are left and none of them brought something."""
        return super().allows_retry(tries) and not any(map(self._brought_something, tries))

    def _brought_something(self, tried: Expansion) -> bool:
        return tried.suffices or any(p >= self.least for _, p in tried.found)
