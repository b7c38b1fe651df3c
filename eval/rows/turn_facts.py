"""What a conversation made of a turn: the answer with its search, and the facts that a row keeps beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...graphs.rag.search_tree import SearchTree
from ...graphs.threads.state import AnswerStatus
from ...modules.calls.prices import ModelUsage
from ...modules.memory.turns import AnsweredFrom
from ..metrics.conversation import QueryForm
from ..metrics.damage import Damage

NO_CALLS = ModelUsage(model="", kind="chat")


@dataclass(frozen=True, kw_only=True)
class ReusedChunk:
    """A chunk that an earlier turn had found, and that an answer rests on without having searched for it."""

    key: str
    """Key of its document, as in ``EvalQuestion.supporting``."""
    chunk_id: str


@dataclass(frozen=True, kw_only=True)
class TurnFacts:
    """One turn, as its conversation has it."""

    dialogue_id: str
    number: int
    """As the data set counts it."""
    conversation: str
    """The conversation; ``""`` where the turn was not asked."""
    turn_id: str = ""
    """Its id there; ``""`` where it was not asked."""
    rag_thread_id: str = ""
    """Root thread of its search in the checkpoints; ``""`` where nothing was searched for."""
    path_length: int
    """Turns from the first of its path to this one: 1 for a first turn, more for a follow-up."""
    standalone_query: str = ""
    """The question as it was understood without the turns before it; ``""`` if the turn failed."""
    answered_from: AnsweredFrom | None = None
    """None if the turn failed."""
    needed_turns: tuple[int, ...] | None = None
    """Numbers, as the data set counts them, of the earlier turns that the conversation found needed; None where it did
    not say.
    """
    reused: tuple[ReusedChunk, ...] = ()
    """Chunks of the answer that this turn did not find by itself."""
    own: ModelUsage = NO_CALLS
    """What leading the conversation took, the calls of the search left out. Of calls that the cache answered, those
    of a turn that an interruption cut in two may be missing.
    """
    retrieved: Mapping[QueryForm, tuple[str, ...]] = field(default_factory=dict)
    """Keys of the documents that a search finds, best first, with each form of the question; empty where nothing is
    searched, or nobody knows what should be found. What these searches take is not counted: they measure.
    """


@dataclass(frozen=True, kw_only=True)
class TurnReply:
    """What came of a turn."""

    answer: str
    """``""`` if it failed."""
    status: AnswerStatus
    tree: SearchTree | None
    """None where nothing was searched for."""
    facts: TurnFacts
    wall_s: float = 0.0
    """Seconds from the question to its answer; 0 where it was not asked."""
    error: str = ""
    """Why it failed; ``""`` otherwise."""
    damage: Damage = field(default_factory=dict)
    """What faults took from the turn beside its search."""

    @property
    def is_unasked(self) -> bool:
        """Whether it failed since a turn before it did."""
        return not self.facts.conversation
