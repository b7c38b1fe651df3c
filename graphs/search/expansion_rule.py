"""How a useful chunk widens the search: by its sub-question, by the passages that it is linked with, or by both."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from ...modules.specs import parse_spec

_Count = Annotated[int, Field(ge=1, le=20)]


@dataclass(frozen=True, kw_only=True)
class ExpansionRule:
    """A rule of expansion; the dataclass fields are its parameters."""

    name: ClassVar[str]
    asks: ClassVar[bool] = True
    """Whether chunks ask their sub-questions."""


@dataclass(frozen=True, kw_only=True)
class SubQuestions(ExpansionRule):
    """Each chunk asks its sub-question."""

    name = "sub_question"


@dataclass(frozen=True, kw_only=True)
class Linked(ExpansionRule):
    """The passages that a useful chunk is linked with are judged for the same query; nothing is asked."""

    name = "link"
    asks = False

    neighbours: _Count = 3
    """Most passages that a query takes in at each hop."""
    hops: _Count = 1
    """Links in a row from a retrieved chunk."""


@dataclass(frozen=True, kw_only=True)
class Both(Linked):
    """First come the linked passages; where they do not close the query, chunks ask their sub-questions."""

    name = "both"
    asks = True


EXPANSION_RULES: Mapping[str, type[ExpansionRule]] = {kind.name: kind for kind in (SubQuestions, Linked, Both)}


@functools.cache  # each judge asks for it
def expansion_rule(spec: str) -> ExpansionRule:
    """Create a rule from its spec.

    >>> expansion_rule("both:neighbours=5")
    Both(neighbours=5, hops=1)

    Raises:
        SettingsError: The name or a parameter is unknown, or a value is wrong.
    """
    return parse_spec("expansion", spec, EXPANSION_RULES)


def follows_links(spec: str) -> bool:
    """Return whether a rule needs a graph of links."""
    return isinstance(expansion_rule(spec), Linked)
