"""Context of a thread's nodes, which is not saved: services, limits, the run and its live events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from ...modules.calls.budget import StopSignal, TreeBudget
from ...modules.calls.journal import ThreadCalls
from ...modules.calls.prices import Prices
from ...modules.calls.prompts import DEFAULT_PROMPTS, Prompts
from ...modules.calls.record import NOTHING, CallRecord, Spend
from ...modules.config.answer_form import USUAL_FORM, AnswerForm
from ...modules.config.reading import AnswerStrategy
from ...modules.errors import SettingsError
from ...modules.judge.contract import AnyJudge, is_judge
from ...modules.judge.insert_block import InsertBlockFilter
from ...modules.judge.sub_questions import SubQuestionWriter
from ...modules.llm.contract import ChatLLM
from ...modules.reader.evidence_choice import USEFUL, EvidenceChoice
from ...modules.retriever.contract import ChunkRetriever
from ...modules.settings import Durability
from ...modules.tools.tool import Tool
from ..config.limits import Limits
from ..search.candidate import Ancestor, Path
from ..search.expansion_rule import follows_links
from ..search.frontier import Frontier, Grant
from ..search.policies.breadth import Breadth
from ..search.policy import Policy
from ..search.sharing_rule import Similar, sharing_rule
from ..search.stop import SetSuffices, Stop
from .branches import Branches
from .eager import JudgeCalls
from .interrupts import Answers
from .state import JsonScalar, RagState

if TYPE_CHECKING:
    from ...modules.retriever.linked_chunks import ChunkLinks


def utc_now() -> str:
    """Return the present time in ISO 8601, UTC."""
    return datetime.now(UTC).isoformat()


def emit(runtime: Runtime[RunContext], event: str, *, node: str, **details: object) -> None:
    """Send one live event; costs almost nothing without a listener.

    Events of a sub-run go to the root's stream.
    """
    context = runtime.context
    write = context.emit_to or runtime.stream_writer
    write(
        {
            "event": event,
            "node": node,
            "thread_id": context.thread_id,
            "parent_thread_id": context.parent_thread_id,
            "root_thread_id": context.root_thread_id,
            "depth": context.depth,
            **details,
        }
    )


Compiled = CompiledStateGraph[RagState, "RunContext", RagState, RagState]

RunEvent = Mapping[str, object]
"""A live event: ``event``, ``node``, ``thread_id``, ``parent_thread_id``, ``root_thread_id``, ``depth`` and more."""


_METHODS: Mapping[str, tuple[str, ...]] = {
    "reader": ("complete",),
    "retriever": ("fingerprint", "asearch"),
    "judge": ("fingerprint", "judge"),
    "links": ("fingerprint", "linked"),
    "policy": ("fingerprint", "choose", "allows_retry"),
    "writer": ("fingerprint", "write"),
    "insert_block": ("fingerprint", "blocks"),
}
"""Methods of a context's services."""


@dataclass(frozen=True, kw_only=True)
class RagContext:
    """Services and limits of a graph.

    ::

        context = RagContext(reader=llm, retriever=retriever, judge=judge, limits=Limits(max_rec_depth=1))
    """

    reader: ChatLLM
    retriever: ChunkRetriever | None = None
    """The retriever; None for the closed-book graph."""
    judge: AnyJudge | None = None
    """The judge; None for graphs other than the judge graph."""
    links: ChunkLinks | None = None
    """Says which chunks are linked, for ``Limits(expansion="link")`` and "both"."""
    limits: Limits = field(default_factory=Limits)
    policy: Policy = field(default_factory=Breadth)
    """Chooses the chunks that ask their sub-questions."""
    stop: Stop = field(default_factory=SetSuffices)
    """Closes queries whose verdicts suffice."""
    writer: SubQuestionWriter | None = None
    """Writes the sub-question of a further try, for policies that ask a chunk again; None lets the reader write it."""
    context_tokens: int | None = None
    """Token limit of a reader prompt: evidence of more than half of it is digested first. None: no limit."""
    evidence: EvidenceChoice = USEFUL
    """Which chunks the readers see, those of sub-runs too."""
    insert_block: InsertBlockFilter | None = None
    """Takes out what does not belong to the answer before the root's reader sees it; None leaves all in."""
    strategy: AnswerStrategy = "stuff"
    """How the reader takes in its evidence, in sub-runs too; unused by the closed-book graph."""
    answer_form: AnswerForm = USUAL_FORM
    """How the answer of the question is written; those of sub-questions are written as ever."""
    prompts: Prompts = DEFAULT_PROMPTS
    """Prompts of the graph's own calls; a judge has those that it was made with."""
    prices: Prices | None = None
    """Prices for ``Limits(max_tree_cost_usd=…)``; None for those of the package."""
    halt: StopSignal | None = None
    """Stops the searches with this context, which then answer from what they found; None where nothing stops them."""
    before: Spend = NOTHING
    """What the question has used before its search; the limits count it."""
    tools: tuple[Tool, ...] = ()
    """Tools of an agent besides the retriever, from ``create_tools``."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Keys that the services were made from, as JSON, which a thread keeps for resuming; empty for services made by
    hand."""

    def __post_init__(self) -> None:
        if not isinstance(self.prompts, Prompts):
            raise SettingsError(f"The prompts are {self.prompts!r:.80}. Give RagContext(prompts=load_prompts(…)).")
        if not isinstance(self.evidence, EvidenceChoice):
            raise SettingsError(f"The evidence is {self.evidence!r:.80}. Give RagContext(evidence=EvidenceChoice(…)).")
        is_similar = isinstance(sharing_rule(self.limits.sharing), Similar)
        if is_similar and self.retriever is not None and not hasattr(self.retriever, "aembed"):
            raise SettingsError(
                f"sharing={self.limits.sharing!r} needs a retriever with the method aembed, as the built-in one has."
            )
        if self.judge is not None and self.links is None and follows_links(self.limits.expansion):
            raise SettingsError(
                f"expansion={self.limits.expansion!r} needs a graph of links. Give RagContext(links=LinkedChunks(…)), "
                "or ask by RagSession or the command line, after judgetree index --graph links."
            )
        for name, methods in _METHODS.items():
            given = getattr(self, name)
            if name == "judge" and is_judge(given):
                continue
            if isinstance(given, type) or not all(callable(getattr(given, method, None)) for method in methods):
                if given is None and name not in ("reader", "policy"):
                    continue
                raise SettingsError(
                    f"RagContext({name}={given!r:.80}) is not allowed. Give an object with {' and '.join(methods)}; "
                    "models and retrievers of LangChain by from_langchain(…)."
                )

    def with_prompts(self, prompts: Prompts) -> RagContext:
        """Return the context with other prompts, those of its filter included; a judge keeps its own."""
        filtering = self.insert_block.with_prompts(prompts) if self.insert_block else None
        return replace(self, prompts=prompts, insert_block=filtering)


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Services and thread of a run's nodes."""

    services: RagContext
    budget: TreeBudget
    graph: Compiled
    """The compiled graph, for sub-runs."""
    fingerprint: str
    """Digest of the root's fingerprint."""
    durability: Durability
    thread_id: str
    root_thread_id: str
    parent_thread_id: str = ""
    conversation_id: str = ""
    depth: int = 0
    is_new: bool = False
    """Whether the root thread was named for this run, so that no earlier run began a thread of the tree."""
    frontier: Frontier | None = None
    """Open candidates of the whole tree; None where candidates are granted as they come."""
    path: Path = ()
    """Chunk ids and sub-questions from the root to this thread."""
    ancestors: tuple[Ancestor, ...] = ()
    """Chunks from the root to this thread."""
    grant: Grant | None = None
    """The grant of this thread; None for the root."""
    is_served: bool = False
    """Whether sub-runs are subgraphs in the checkpoints of an outer graph instead of threads of their own."""
    stream_answer: bool = False
    """Whether to emit the root's answer as it grows."""
    branches: Branches = field(default_factory=Branches)
    """Branches of this thread."""
    judge_calls: JudgeCalls = field(default_factory=JudgeCalls)
    """Judge calls of this thread."""
    calls: ThreadCalls | None = None
    """Journal of the thread's model calls; None without checkpoints."""
    started_at: str = field(default_factory=utc_now)
    """Start of this run of the thread: ISO 8601, UTC."""
    lost_calls: list[CallRecord] = field(default_factory=list)
    """Calls of nodes of the thread that failed, which its state has not."""
    answers: Answers = field(default_factory=dict)
    """Answers to interrupts of the whole tree, by their ids."""
    emit_to: Callable[[RunEvent], None] | None = None
    """Receiver of a sub-run's events; None for the root, which has its own stream."""

    def metadata(self) -> dict[str, JsonScalar]:
        """Return the metadata saved with every checkpoint of this thread."""
        return {
            "thread_id": self.thread_id,
            "parent_thread_id": self.parent_thread_id,
            "root_thread_id": self.root_thread_id,
            "conversation_id": self.conversation_id,
            "depth": self.depth,
            "fingerprint": self.fingerprint,
            "started_at": self.started_at,
            **(vars(self.grant) if self.grant else {}),
        }
