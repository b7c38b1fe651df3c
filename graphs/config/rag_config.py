"""``RagConfig``: everything that decides an answer, besides question, collection and system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import field_validator

from ...modules.calls.prompts import Prompts
from ...modules.config.config import as_fault
from ...modules.config.judging import Judging
from ...modules.config.models import Models
from ...modules.config.reading import Reading
from ...modules.config.retrieval import Retrieval
from .limits import Limits
from .searching import Searching

if TYPE_CHECKING:
    from ...modules.prompts.reading import GivenPrompts


class RagConfig(Reading, Limits, Searching, Judging, Retrieval, Models):  # pydantic puts the last base's fields first
    """Everything that decides an answer, besides question, collection and system.

    >>> RagConfig(topk=5).given
    {'topk': 5}
    """

    @field_validator("prompts", mode="before")
    @classmethod
    def _read_prompts(cls, given: GivenPrompts) -> Prompts | None:
        from ...modules.prompts.reading import load_prompts

        with as_fault():
            return None if given is None else load_prompts(given)

    @field_validator("judge")
    @classmethod
    def _check_judge(cls, name: str) -> str:
        from ...modules.judge.factory import is_own_judge

        with as_fault():
            is_own_judge(name)
        return name

    @field_validator("search_graph")
    @classmethod
    def _check_search_graph(cls, kind: str | None) -> str | None:
        from ...modules.structure.building import check_kind

        with as_fault():
            if kind is not None:
                check_kind(kind)
        return kind

    @field_validator("tools")
    @classmethod
    def _check_tools(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from ...modules.tools.factory import check_tools

        with as_fault():
            check_tools(names)
        return names


USUAL = RagConfig()
"""The defaults."""
