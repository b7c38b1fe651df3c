"""Stops: what of its verdicts closes a query, so that none of its chunks asks on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from ...modules.specs import parse_spec
from .findings import Findings


@dataclass(frozen=True, kw_only=True)
class Stop(ABC):
    """The base of the stops, dataclasses whose fields are their parameters."""

    name: ClassVar[str]

    eager: bool = False
    """Whether a chunk that closes its query cancels the judge calls of the query that have not begun."""

    def fingerprint(self) -> dict[str, str]:
        """Return the name and the parameters."""
        return {"name": self.name, **{key: str(value) for key, value in asdict(self).items()}}

    @abstractmethod
    def closes(self, findings: Findings) -> bool:
        """Return whether a query asks nothing more."""


@dataclass(frozen=True, kw_only=True)
class SetSuffices(Stop):
    """Closes a query where a chunk scores 2, or the judge says that its chunks suffice together; the default."""

    name = "set"

    def closes(self, findings: Findings) -> bool:
        """Return whether a chunk or the set suffices."""
        return findings.has_sufficient_chunk or findings.set_suffices is True


@dataclass(frozen=True, kw_only=True)
class AnyChunk(Stop):
    """Closes a query where a chunk scores 2, whatever the judge says of the set."""

    name = "any"

    def closes(self, findings: Findings) -> bool:
        """Return whether a chunk suffices."""
        return findings.has_sufficient_chunk


@dataclass(frozen=True, kw_only=True)
class Confident(Stop):
    """Closes a query where the judge is so sure that its chunks suffice together, or that one of them does."""

    name = "confidence"

    p: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Least probability."""

    def closes(self, findings: Findings) -> bool:
        """Return whether P(the set suffices), or that of a chunk with score 2, is at least ``p``.

        A chunk or set without a probability counts as sure.
        """
        of_set = findings.p_suffices if findings.p_suffices is not None else float(findings.set_suffices is True)
        return max(of_set, findings.p_sufficient_chunk) >= self.p


@dataclass(frozen=True, kw_only=True)
class Never(Stop):
    """Never closes a query: what is needed asks on, whatever suffices beside it. For recordings."""

    name = "never"

    def closes(self, findings: Findings) -> bool:
        """Return False."""
        return False


STOPS: Mapping[str, type[Stop]] = {kind.name: kind for kind in (SetSuffices, AnyChunk, Confident, Never)}


def create_stop(spec: str) -> Stop:
    """Create a stop from its spec.

    >>> create_stop("confidence:p=0.8").fingerprint()
    {'name': 'confidence', 'eager': 'False', 'p': '0.8'}

    Raises:
        SettingsError: The name or a parameter is unknown, or a value is wrong.
    """
    return parse_spec("stop", spec, STOPS)
