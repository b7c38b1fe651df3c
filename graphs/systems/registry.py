"""Registry of the systems, for sessions, batch runs and the command line.

A system is one file, its name in ``result.SystemName`` and its line here. A system with prompts of its own adds their
version to ``modules.reader.multistep_prompts.STEP_VERSIONS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, Unpack

from ..rag.graph import GraphOptions, RagGraph
from ..rag.result import SystemName
from .closed_book import build_closed_book
from .ircot import build_ircot
from .iter_retgen import build_iter_retgen
from .judge_rag import build_judge_rag
from .naive_rag import build_naive_rag
from .react import build_react
from .self_ask import build_self_ask


class GraphBuilder(Protocol):
    """Protocol of the functions that build a system's graph."""

    def __call__(self, **options: Unpack[GraphOptions]) -> RagGraph:
        """Build the graph. Options as for ``RagGraph``."""
        ...


@dataclass(frozen=True, kw_only=True)
class System:
    """One way to answer a question, and its needs."""

    build: GraphBuilder
    description: str
    """One line for the user."""
    retrieves: bool = True
    """Whether its context needs a retriever."""
    judges: bool = False
    """Whether its context needs a judge."""


SYSTEMS: Mapping[SystemName, System] = {
    "llm": System(build=build_closed_book, description="closed book", retrieves=False),
    "naive": System(build=build_naive_rag, description="retrieve once and answer"),
    "iter_retgen": System(build=build_iter_retgen, description="question and last draft are the next search"),
    "ircot": System(build=build_ircot, description="every sentence of a chain of thought is the next search"),
    "self_ask": System(build=build_self_ask, description="follow-up questions, each answered by a search"),
    "react": System(build=build_react, description="an agent that thinks and searches in turn"),
    "judge": System(build=build_judge_rag, description="recursive, judged chunk by chunk", judges=True),
}
"""In the order of reports."""
