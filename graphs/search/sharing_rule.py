"""Which sub-questions count as asked already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from ...modules.specs import parse_spec


@dataclass(frozen=True, kw_only=True)
class SharingRule:
    """A rule of sharing; the dataclass fields are its parameters."""

    name: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class Off(SharingRule):
    """Each sub-question is asked on a thread of its own."""

    name = "off"


@dataclass(frozen=True, kw_only=True)
class Equal(SharingRule):
    """A sub-question that equals an earlier one, capitals, blanks and end marks aside, takes its answer."""

    name = "equal"


@dataclass(frozen=True, kw_only=True)
class Similar(SharingRule):
    """So does one whose embedding is near that of an earlier one. Costs an embedding a question."""

    name = "similar"

    at: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Least cosine similarity."""


SHARING_RULES: Mapping[str, type[SharingRule]] = {kind.name: kind for kind in (Off, Equal, Similar)}


def sharing_rule(spec: str) -> SharingRule:
    """Create a rule from its spec.

    >>> sharing_rule("similar:at=0.9")
    Similar(at=0.9)

    Raises:
        SettingsError: The name or a parameter is unknown, or a value is wrong.
    """
    return parse_spec("sharing", spec, SHARING_RULES)
