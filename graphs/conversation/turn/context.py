"""What the nodes of a turn need besides its state: services, and how the conversation is led. None of it is saved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ....modules.calls.journal import ThreadCalls
from ....modules.calls.usage import CallMeter
from ....modules.judge.contract import Judge
from ....modules.llm.json_reply import JsonChat
from ....modules.memory.messages import HistoryRenderer
from ....modules.memory.prompts import CONVERSATION_VERSION
from ....modules.memory.turns import PathSpans, QaPair
from ....modules.retriever.web import WebSearch
from ....modules.settings import Settings
from ...rag.graph import RagGraph
from ...threads.context import RagContext, RunEvent
from .events import Stream, TreeEvent
from .state import ConversationState
from .store import ConversationStore

FromHistory = Literal["assessed", "never", "trust"]
"""When earlier turns may answer: once the judge confirms their evidence, never, or when the model says so."""


class TurnMemory(Protocol):
    """Remembers all turns of a conversation; ``modules.memory.memory.ConversationMemory`` is one.

    Its methods block; they are called in threads.
    """

    def missing(self, conversation_id: str, turn_ids: Collection[str]) -> set[str]:
        """Those of the turns that it does not have."""
        ...

    def add_turns(self, conversation_id: str, turns: Sequence[QaPair]) -> None:
        """Keep turns, each once."""
        ...

    def get_recent_history(self, conversation_id: str, limit: int, *, spans: PathSpans) -> list[QaPair]:
        """The newest turns of a path, oldest first."""
        ...

    def retrieve_relevant_history(
        self,
        conversation_id: str,
        query: str,
        top_k: int,
        *,
        spans: PathSpans | None = None,
        below_number: int | None = None,
    ) -> list[tuple[QaPair, float]]:
        """The turns of a path most like the query, best first."""
        ...

    def turns_of(self, conversation_id: str, turn_ids: Collection[str] | None = None) -> list[QaPair]:
        """Turns by id, or all."""
        ...

    def conversations(self) -> list[str]:
        """Ids of the conversations that have turns."""
        ...

    def delete_turns(self, conversation_id: str, turn_ids: Collection[str] | None = None) -> int:
        """Forget turns by id, or all; how many that were."""
        ...


@dataclass(frozen=True, kw_only=True)
class ConversationOptions:
    """How a conversation is led. The first five are those of LangChain's ``ConversationalRetrievalChain``.

    >>> ConversationOptions(answer_from_history="never").answer_without_evidence
    False
    """

    rephrase_question: bool = True
    """Let the reader answer the stand-alone question; without it the search alone gets that, and the reader the
    question as it was asked."""
    return_source_documents: bool = False
    """Give the chunks that an answer rests on back with it, as documents."""
    return_generated_question: bool = False
    """Give the stand-alone question back too."""
    get_chat_history: HistoryRenderer | None = None
    """Writes the history down for prompts in place of our own way."""
    response_if_no_docs_found: str | None = None
    """The answer where a search finds nothing at all; None leaves it to the reader."""
    answer_from_history: FromHistory = "assessed"
    """``assessed``: earlier turns answer where the model gives an answer and names kept evidence, and the judge scores
    that evidence 2 for the question. ``never``: every follow-up is condensed and searched for, as in the classic chain.
    ``trust``: the model's word is enough. An empty answer or a refusal is searched for in any case."""
    answer_without_evidence: bool = False
    """Where the evidence does not answer, answer from history and general knowledge, and mark the turn so."""
    direct_answer: bool = False
    """Ask first whether a message is small talk, which needs no search. One call a turn."""
    web_or_rag: bool = False
    """Ask for each search whether the web is the better place. One call a search; needs a ``web`` service."""
    switch_collection: bool = False
    """Let a conversation that has searched another collection go on in this one: evidence of the other one is left out,
    and the turns say which collection they searched. Without it, such a question is refused."""
    summary_memory: bool = False
    """Fold turns that are too old for a prompt into a running summary. One call in ``max_recent_turns`` turns."""


@dataclass(frozen=True, kw_only=True)
class TurnLimits:
    """How much of a conversation a prompt shows."""

    max_recent_turns: int = 10
    """Newest turns of the path."""
    max_relevant_turns: int = 3
    """Older turns of the path that are most like the question."""
    max_tokens: int = 8192
    """Tokens that one prompt may have; evidence over half of it is digested, for the reader too."""
    max_rewrite_tokens: int = 256
    """Tokens of a rewritten question. A longer one is not used: the question is searched for as it was asked."""
    max_summary_tokens: int = 512
    """Tokens of a summary, and of a digest; what is longer is cut."""
    max_thinking_tokens: int = 1024
    """Tokens that a call for one of these may use besides, for a model that thinks first."""
    max_evidence_tokens: int = 2048
    """Tokens of evidence of earlier turns that a turn looks at; the most and last used is kept."""
    max_kept_chunks: int = 6
    """Chunks of earlier turns that it looks at. Each that is found useful costs a call of the judge in a search."""

    @classmethod
    def from_settings(cls, settings: Settings) -> TurnLimits:
        """The limits that the settings name."""
        return cls(
            max_recent_turns=settings.max_recent_turns,
            max_relevant_turns=settings.max_relevant_turns,
            max_tokens=settings.llm_max_tokens,
            max_rewrite_tokens=settings.max_rewrite_tokens,
            max_summary_tokens=settings.max_summary_tokens,
            max_thinking_tokens=settings.max_thinking_tokens,
            max_evidence_tokens=settings.max_evidence_tokens,
            max_kept_chunks=settings.max_kept_chunks,
        )

    @property
    def max_json_tokens(self) -> int:
        """Tokens of a JSON reply that leads the conversation: a rewrite, an answer, some numbers, and thinking."""
        return self.max_thinking_tokens + 2 * self.max_rewrite_tokens


def turn_fingerprint(options: ConversationOptions, limits: TurnLimits) -> str:
    """Digest of what decides how a turn is led, beside the models: options, limits and prompts."""
    led = {**vars(options), **vars(limits), "prompts": CONVERSATION_VERSION}
    if (render := options.get_chat_history) is not None:
        led["get_chat_history"] = getattr(render, "__qualname__", type(render).__qualname__)
    return hashlib.sha256(json.dumps(led, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class TurnContext:
    """The services of one turn."""

    conversation: ConversationState
    """As it was when the turn was opened; nobody else writes to it until the turn is saved."""
    rag: RagGraph
    services: RagContext
    """Those of the search; its reader also leads the conversation."""
    chat: JsonChat
    """The same model, for replies as JSON."""
    judge: Judge
    """Confirms that kept evidence answers a question."""
    memory: TurnMemory
    store: ConversationStore
    options: ConversationOptions = field(default_factory=ConversationOptions)
    limits: TurnLimits = field(default_factory=TurnLimits)
    web: WebSearch | None = None
    calls: ThreadCalls | None = None
    """The journal of the turn's own model calls; None where checkpoints do not outlive the process."""
    stream: Stream | None = None
    """Told of answer, thinking and progress as they come; None where nobody listens."""

    @property
    def conversation_id(self) -> str:
        """Random id of the conversation, by which memory and threads know it."""
        return self.conversation["conversation_id"]

    def meter(self, node: str) -> CallMeter:
        """Keeps the records of a node's model calls, and writes them to the journal."""
        return CallMeter(node=node, calls=self.calls)

    def tell(self, node: str, event: RunEvent | None = None) -> None:
        """Tell that a step has begun, or that the search has come further."""
        if self.stream is not None:
            self.stream.listener(TreeEvent(node=node, event=event or {}))
