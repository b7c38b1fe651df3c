"""Registry of the systems, for sessions, batch runs and the command line.

A system is one file and its line here; one of one's own needs neither (``find_system``). A system with prompts of its
own adds them to ``modules.reader.step_prompts.STEP_PROMPTS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, Unpack

from ...modules.config.config import Trait
from ...modules.errors import SettingsError
from ...modules.parts import check_name, instantiate, part_of
from ..rag.graph import GraphOptions, RagGraph
from .closed_book import build_closed_book
from .crag import build_crag
from .ircot import build_ircot
from .iter_retgen import build_iter_retgen
from .judge_rag import build_judge_rag
from .naive_rag import build_naive_rag
from .react import build_react
from .search_r1 import build_search_r1
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
    asks_sub_questions: bool = False
    """Whether its useful chunks may ask sub-questions, by a policy."""
    uses_tools: bool = False
    """Whether it uses the tools of its context."""
    asks_on: bool = True
    """Whether it may ask further questions, or search again, as deep as the limits allow."""

    @property
    def has(self) -> frozenset[Trait]:
        """What keys of a configuration may need."""
        traits: dict[Trait, bool] = {
            "retriever": self.retrieves,
            "judge": self.judges,
            "sub_questions": self.asks_sub_questions,
            "depth": self.asks_on,
            "tools": self.uses_tools,
        }
        return frozenset(trait for trait, is_there in traits.items() if is_there)


SYSTEMS: Mapping[str, System] = {
    "llm": System(build=build_closed_book, description="closed book", retrieves=False, asks_on=False),
    "naive": System(build=build_naive_rag, description="retrieve once and answer", asks_on=False),
    "iter_retgen": System(build=build_iter_retgen, description="question and last draft are the next search"),
    "ircot": System(build=build_ircot, description="every sentence of a chain of thought is the next search"),
    "self_ask": System(build=build_self_ask, description="follow-up questions, each answered by a search"),
    "react": System(build=build_react, description="an agent that thinks and acts in turn", uses_tools=True),
    "search_r1": System(build=build_search_r1, description="thoughts and searches between tags"),
    "crag": System(build=build_crag, description="a search that is judged, and widened once", judges=True),
    "judge": System(
        build=build_judge_rag, description="recursive, judged chunk by chunk", judges=True, asks_sub_questions=True
    ),
}
"""The systems by name, in the order of reports."""


def find_system(given: str | GraphBuilder) -> System:
    """Return a system: a built-in one by name, or one of one's own, whose ``GraphBuilder`` is given, or its
    ``module:name`` or a plug-in's name.

    A system of one's own is given a retriever and a judge. Its module is imported when its graph is built.

    Raises:
        SettingsError: The name is none of them; the message lists the allowed ones.
    """
    if isinstance(given, str):
        check_name("system", given, SYSTEMS)
        if given in SYSTEMS:
            return SYSTEMS[given]
    return System(
        build=_OwnBuilder(given), description="of one's own", judges=True, asks_sub_questions=True, uses_tools=True
    )


def retrieves(system: str) -> bool:
    """Whether a system searches a collection; one of one's own may."""
    return system not in SYSTEMS or SYSTEMS[system].retrieves


def judges(system: str) -> bool:
    """Whether a system has a judge; one of one's own may."""
    return system not in SYSTEMS or SYSTEMS[system].judges


@dataclass(frozen=True)
class _OwnBuilder:
    """Builds the graph of a system of one's own, with its name and source in its fingerprints."""

    given: str | GraphBuilder

    def __call__(self, **options: Unpack[GraphOptions]) -> RagGraph:
        part = part_of("system", self.given)
        usual: GraphOptions = {"checkpointer": "memory:", "context": None, "durability": "async", "recording": None}
        given: GraphOptions = {**usual, **options}
        graph = instantiate(part, **given)
        if not isinstance(graph, RagGraph):
            raise SettingsError(
                f"The system {part.name!r} is {graph!r:.100}. Name a function that builds a judgetree.RagGraph."
            )
        graph.system, graph.source = part.name, part.source
        graph.recording = given["recording"] or graph.recording  # a builder need not name it
        return graph
