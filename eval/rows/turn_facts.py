"""The outcome of a turn: its answer and search, and the facts about the conversation that a row keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...graphs.rag.search_tree import SearchTree
from ...graphs.threads.state import AnswerStatus
from ...modules.calls.prices import ModelUsage
from ...modules.caveats.kinds import Caveats
from ...modules.memory.turns import AnsweredFrom
from ..metrics.conversation import QueryForm
from ..metrics.damage import Damage
from ..metrics.retrieval import FoundKey

NO_CALLS = ModelUsage(model="", kind="chat")


@dataclass(frozen=True, kw_only=True)
class ReusedChunk:
    """A chunk found by an earlier turn that an answer uses without searching for it."""

    key: str
    """Key of its document, as in ``EvalQuestion.supporting``."""
    chunk_id: str


@dataclass(frozen=True, kw_only=True)
class TurnFacts:
    """Facts about one turn of a conversation."""

    dialogue_id: str
    number: int
    """Number of the turn in the data set."""
    conversation: str
    """Name of the conversation; ``""`` if the turn was not asked."""
    turn_id: str = ""
    """Id of the turn in its conversation; ``""`` if it was not asked."""
    rag_thread_id: str = ""
    """Root thread of its search in the checkpoints; ``""`` without a search."""
    path_length: int
    """Turns on the path up to this one: 1 for a first turn, more for a follow-up."""
    standalone_query: str = ""
    """The stand-alone rewrite of the question; ``""`` if the turn failed."""
    answered_from: AnsweredFrom | None = None
    """None if the turn failed."""
    needed_turns: tuple[int, ...] | None = None
    """Data set numbers of the earlier turns that the conversation needed; None if it did not say."""
    reused: tuple[ReusedChunk, ...] = ()
    """Chunks of the answer that this turn's own search did not find."""
    own: ModelUsage = NO_CALLS
    """Usage of the conversation itself, without its search. Cached calls of a turn that was interrupted and resumed may
    be missing.
    """
    retrieved: Mapping[QueryForm, tuple[FoundKey, ...]] = field(default_factory=dict)
    """Keys of the documents that a search finds with each form of the question, best first; empty without a search or
    without gold documents. The usage of these measuring searches is not counted.
    """


@dataclass(frozen=True, kw_only=True)
class TurnReply:
    """The outcome of one turn."""

    answer: str
    """The answer; ``""`` if the turn failed."""
    status: AnswerStatus
    tree: SearchTree | None
    """None without a search."""
    facts: TurnFacts
    wall_s: float = 0.0
    """Seconds from question to answer; 0 if it was not asked."""
    error: str = ""
    """Why the turn failed; ``""`` otherwise."""
    caveats: Caveats = field(default_factory=dict)
    """What makes replies worse than they look, those of its search included."""
    damage: Damage = field(default_factory=dict)
    """What faults took from the turn, its search left out."""

    @property
    def is_new_thread(self) -> bool:
        """Whether the turn was not asked because an earlier turn failed."""
        return not self.facts.conversation
