"""Context of a turn's nodes, which is not saved: services, options, limits and live events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ....modules.calls.budget import TreeBudget
from ....modules.calls.growing_text import Delta
from ....modules.calls.journal import ThreadCalls
from ....modules.calls.prompts import DEFAULT_PROMPTS, Prompts
from ....modules.calls.usage import CallMeter
from ....modules.digests import json_digest
from ....modules.judge.contract import AnyJudge
from ....modules.judge.prompts import INSERT_BLOCK_PROMPTS
from ....modules.llm.contract import ChatLLM
from ....modules.llm.json_reply import JsonChat
from ....modules.llm.langchain_chat import LangChainModel, name_of_llm
from ....modules.memory.messages import HistoryRenderer
from ....modules.memory.prompts import CONVERSATION_PROMPTS
from ....modules.memory.turns import PathSpans, QaPair
from ....modules.prompts.reading import GivenPrompts, load_prompts
from ....modules.retriever.web import WebSearch
from ....modules.settings import Settings
from ...config.conversing import ConversationSwitches
from ...rag.graph import RagGraph
from ...rag.search_tree import SearchTree
from ...threads.context import RagContext, RunEvent
from .events import Stream, TreeEvent
from .state import ConversationState
from .store import ConversationStore

ANSWER = "turn"
"""Name in the budget under which a turn keeps a call for its answer."""


class TurnMemory(Protocol):
    """Protocol of a memory of all turns, such as ``modules.memory.memory.ConversationMemory``.

    Its methods block; they are called in threads.
    """

    def missing(self, conversation_id: str, turn_ids: Collection[str]) -> set[str]:
        """Return those of the ids whose turns it does not have."""
        ...

    def add_turns(self, conversation_id: str, turns: Sequence[QaPair]) -> None:
        """Add turns; a turn that it has is replaced."""
        ...

    def get_recent_history(self, conversation_id: str, limit: int, *, spans: PathSpans) -> list[QaPair]:
        """Return the newest turns of a path, oldest first."""
        ...

    def retrieve_relevant_history(
        self, conversation_id: str, query: str, top_k: int, *, spans: PathSpans, below_number: int
    ) -> list[tuple[QaPair, float]]:
        """Return (turn, similarity) of the turns of a path that are most similar to the query, best first."""
        ...

    def turns_of(self, conversation_id: str, turn_ids: Collection[str] | None = None) -> list[QaPair]:
        """Return turns by id, or all turns."""
        ...

    def conversations(self) -> list[str]:
        """Return the ids of the conversations that have turns."""
        ...

    def delete_turns(self, conversation_id: str, turn_ids: Collection[str] | None = None) -> int:
        """Delete turns by id, or all turns; returns their number."""
        ...


@dataclass(frozen=True, kw_only=True)
class ConversationOptions(ConversationSwitches):
    """How turns are answered. Options of LangChain's ``ConversationalRetrievalChain`` have its names.

    >>> ConversationOptions(answer_from_history="never").answer_without_evidence
    False
    """

    return_source_documents: bool = False
    """Return the chunks that an answer rests on, as documents."""
    return_generated_question: bool = False
    """Return the stand-alone question."""
    get_chat_history: HistoryRenderer | None = None
    """Renders the history for prompts; None uses judgetree's own format."""
    output_key: str = "answer"
    """Key of the answer in ``TurnResult.to_document``."""
    response_if_no_docs_found: str | None = None
    """The answer if a search finds no chunk; None leaves it to the reader."""
    condense_llm: str | ChatLLM | LangChainModel | None = None
    """Model that understands follow-ups: it chooses the turns that matter, assesses them and rewrites the question, so
    that answers from earlier turns are its own. A spec, or a model; None takes the setting ``condense_llm``, else the
    model that answers."""
    web_or_rag: bool = False
    """Let the model choose between web and collection. Costs one model call a search; needs a ``web`` service."""
    switch_collection: bool = False
    """Let a conversation that has searched another collection continue in this one, without evidence of the other; the
    turns name the collection they searched. False refuses such a question."""
    prompts_thinking: GivenPrompts = None
    """Prompts of turns with thinking on, which replace those of the same names; None changes none."""
    prompts_no_thinking: GivenPrompts = None
    """The same for turns with thinking off."""


@dataclass(frozen=True, kw_only=True)
class TurnLimits:
    """How much of a conversation a prompt shows."""

    max_recent_turns: int = 10
    """Newest turns of the path."""
    max_relevant_turns: int = 3
    """Older turns of the path that are most similar to the question."""
    max_tokens: int = 8192
    """Tokens of a prompt; evidence of more than half of it is digested first, for the reader too."""
    max_rewrite_tokens: int = 256
    """Tokens of a rewritten question; a longer rewrite is not used."""
    max_summary_tokens: int = 512
    """Tokens of a summary, and of a digest; longer ones are cut."""
    max_thinking_tokens: int = 1024
    """Additional tokens of a call for a rewrite, summary or digest, for a model that thinks first."""
    max_evidence_tokens: int = 2048
    """Tokens of evidence of earlier turns that a turn considers, the most often and most recently used first."""
    max_kept_chunks: int = 6
    """Chunks of earlier turns that a turn considers. Each useful one costs a judge call in a search."""

    @classmethod
    def from_settings(cls, settings: Settings) -> TurnLimits:
        """Return the limits in the settings."""
        return cls(
            max_recent_turns=settings.max_recent_turns,
            max_relevant_turns=settings.max_relevant_turns,
            max_tokens=settings.llm_max_tokens or cls.max_tokens,
            max_rewrite_tokens=settings.max_rewrite_tokens,
            max_summary_tokens=settings.max_summary_tokens,
            max_thinking_tokens=settings.max_thinking_tokens,
            max_evidence_tokens=settings.max_evidence_tokens,
            max_kept_chunks=settings.max_kept_chunks,
        )

    @property
    def max_json_tokens(self) -> int:
        """Tokens of a JSON reply: a rewrite, an answer, some numbers, and thinking."""
        return self.max_thinking_tokens + 2 * self.max_rewrite_tokens


_SHOWN_ONLY = ("return_source_documents", "return_generated_question", "output_key")
"""Options that change what is returned of a turn, and not the turn."""


def turn_fingerprint(
    options: ConversationOptions,
    limits: TurnLimits,
    prompts: Prompts = DEFAULT_PROMPTS,
    overrides: Mapping[str, str] | None = None,
) -> str:
    """Compute a digest of options, limits, prompts and overrides, which determine a turn together with the models."""
    parts = {**vars(options), **vars(limits), "prompts": prompts.version(CONVERSATION_PROMPTS)}
    for name in _SHOWN_ONLY:
        del parts[name]
    if options.condense_llm is not None and not isinstance(options.condense_llm, str):
        parts["condense_llm"] = name_of_llm(options.condense_llm)
    for name in ("prompts_thinking", "prompts_no_thinking"):
        parts[name] = load_prompts(parts[name]).digest
    parts["insert_block_prompt"] = prompts.version(INSERT_BLOCK_PROMPTS)
    if overrides:
        parts["overrides"] = dict(overrides)
    if (render := options.get_chat_history) is not None:
        parts["get_chat_history"] = getattr(render, "__qualname__", type(render).__qualname__)
    return json_digest(parts).hex()[:16]


@dataclass(frozen=True, kw_only=True)
class TurnContext:
    """The services of one turn."""

    conversation: ConversationState
    """State with the turn open; the conversation's lock keeps others from writing to it until the turn is saved."""
    rag: RagGraph
    services: RagContext
    """Services of the search; its reader also makes the turn's own calls."""
    chat: JsonChat
    """The reader, for replies as JSON."""
    condenser: ChatLLM
    """Model that understands follow-ups."""
    condensing: JsonChat
    """The same, for replies as JSON."""
    judge: AnyJudge
    """Judge that confirms evidence of earlier turns."""
    memory: TurnMemory
    store: ConversationStore
    options: ConversationOptions = field(default_factory=ConversationOptions)
    limits: TurnLimits = field(default_factory=TurnLimits)
    web: WebSearch | None = None
    budget: TreeBudget | None = None
    """What the limits of the question leave for the turn's own calls; None without a search that limits them."""
    calls: ThreadCalls | None = None
    """Journal of the turn's own model calls; None for a store in memory."""
    stream: Stream | None = None
    """Receiver of answer, thinking and progress; None without a listener."""
    trees: dict[str, SearchTree] = field(default_factory=dict)
    """Search trees that the turn's nodes have read, by root thread."""

    @property
    def conversation_id(self) -> str:
        """Random id that keys the conversation's memory, threads and trees."""
        return self.conversation["conversation_id"]

    def start(self, node: str, *, answers: bool = False) -> CallMeter:
        """Emit that a node has started, and return the meter of its calls; one that ``answers`` takes the kept call."""
        self.emit(node)
        return CallMeter(node=node, calls=self.calls, budget=self.budget, held_by=ANSWER if answers else "")

    def emit_answer(self, text: str) -> None:
        """Emit a whole answer in place of the pieces sent so far."""
        if self.stream is not None:
            self.stream.restart()
            self.stream.on_text(Delta(text))

    def emit(self, node: str, event: RunEvent | None = None) -> None:
        """Emit progress: an ``event`` of the search, or the start of a node."""
        if self.stream is not None:
            self.stream.listener(TreeEvent(node=node, event=event or {}))
