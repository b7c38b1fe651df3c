"""Nodes of search trees as plain data: a query node for each thread, with a chunk node for each retrieved chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import zip_longest
from operator import itemgetter
from typing import Literal, TypeVar, get_args

from ...modules.calls.record import count_caveats
from ...modules.calls.usage import CallRecord, UsageTotals, total_usage
from ...modules.caveats.kinds import CaveatKind
from ...modules.errors import LimitName
from ...modules.judge.contract import Score, VerdictStatus
from ...modules.passage_names import passage_name, title_of
from ..search.candidate import SkipReason
from ..threads.handed_on import handed_on
from ..threads.snapshots import ThreadStatus
from ..threads.state import AnswerStatus, JsonScalar, Search, Try

VerdictLabel = Literal["2", "1", "0", "unknown", "cancelled", "pending"]
"""A verdict in one word: the score, or the reason why there is none."""
VERDICT_LABELS: tuple[VerdictLabel, ...] = get_args(VerdictLabel)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ChunkNode:
    """One retrieved chunk with its verdict and its sub-run."""

    chunk_id: str
    text: str
    metadata: Mapping[str, JsonScalar]
    """Metadata of the chunk in the checkpoint; ``rank`` counts from 0 there, ``position`` from 1."""
    tries: tuple[Try, ...] = ()
    """All sub-questions that the chunk asked, in their order; empty if it asked one at most."""
    sub_runs: tuple[QueryNode, ...] = field(default=(), repr=False)
    """Sub-runs of this chunk's supplementary question and of its further tries, in their order."""

    @property
    def child(self) -> QueryNode | None:
        """The first sub-run; None if none was planned."""
        return self.sub_runs[0] if self.sub_runs else None

    @property
    def verdict(self) -> VerdictStatus:
        """Status of the verdict; "pending" for a chunk without one."""
        given = self.metadata.get("verdict")
        return next((status for status in get_args(VerdictStatus) if status == given), "pending")

    @property
    def score(self) -> Score | None:
        """2 = answers the query alone, 1 = contains a needed fact, 0 = does not help; None if not judged."""
        given = self.metadata.get("score")
        return next((score for score in get_args(Score) if score == given), None) if self.verdict == "judged" else None

    @property
    def verdict_label(self) -> VerdictLabel:
        """The score as text, or the verdict's status; a judged chunk without a score counts as unknown."""
        if self.verdict != "judged":
            return self.verdict
        labels: dict[Score | None, VerdictLabel] = {2: "2", 1: "1", 0: "0"}
        return labels.get(self.score, "unknown")

    @property
    def score_confidence(self) -> float | None:
        """The judge's probability of its score, in [0, 1]; None if it gave none."""
        return self._number("score_confidence")

    @property
    def p_needed(self) -> float | None:
        """Probability in [0, 1] that the chunk holds a needed fact; None if the judge gave none."""
        return self._number("p_needed")

    @property
    def p_calibrated(self) -> bool:
        """Whether ``p_needed`` was fitted on judgements with known answers."""
        return self.metadata.get("p_calibrated") is True

    @property
    def retrieval_score(self) -> float | None:
        """The retriever's score, higher is better; comparable only among chunks of one query. None if unknown."""
        return self._number("retrieval_score")

    @property
    def rank(self) -> int | None:
        """Rank among the chunks of its query in the retriever's order, 0 for the best; None if unknown."""
        given = self.metadata.get("rank")
        return given if isinstance(given, int) else None

    @property
    def position(self) -> int | None:
        """Its rank as drawings, tables and names show it, 1 for the best; None if unknown."""
        return None if self.rank is None else self.rank + 1

    @property
    def found_by(self) -> str:
        """Query of the round that found the chunk; ``""`` for systems that do not search in rounds."""
        return self._text("found_by")

    @property
    def round(self) -> int:
        """Number of the round that found the chunk, from 0; 0 for systems that do not search in rounds."""
        given = self.metadata.get("recursion_depth")
        return given if self.found_by and isinstance(given, int) else 0

    @property
    def round_answer(self) -> str:
        """Answer that the reader was shown to the query of a round that found the chunk; ``""`` without one."""
        return self._text("round_answer")

    @property
    def source(self) -> str:
        """File or record of the chunk, relative to the index root; ``""`` if unknown."""
        return self._text("source")

    @property
    def title(self) -> str:
        """Title of the chunk's document; ``""`` if the name of its file says as much."""
        return title_of(self.metadata)

    @property
    def name(self) -> str:
        """Short name for people: title, else source, else id."""
        return passage_name(self.source, self.title, self.chunk_id)

    @property
    def reason(self) -> str:
        """The judge's reason for its score; ``""`` if it gave none."""
        return self._text("reason")

    @property
    def next_query(self) -> str:
        """The supplementary question of a chunk with score 1; ``""`` without one."""
        return self._text("next_query")

    @property
    def next_rag_thread_id(self) -> str:
        """Thread of the sub-run; ``""`` until one is planned."""
        return self._text("next_rag_thread_id")

    @property
    def is_shared_from_elsewhere(self) -> bool:
        """Whether its sub-answer is of an earlier search of the conversation."""
        return self.metadata.get("shared_sub_runs") is not None

    @property
    def shared_thread_id(self) -> str:
        """Thread of the run of an equal question, from which the chunk takes its sub-answer; ``""`` without one."""
        return self._text("shared_thread_id")

    @property
    def linked_from(self) -> str:
        """Id of the chunk of the same query that links led from; ``""`` for a chunk that was retrieved."""
        return self._text("linked_from")

    @property
    def linked_by(self) -> str:
        """The title by which it is linked; ``""`` for a chunk that was retrieved."""
        return self._text("linked_by")

    @property
    def link_hop(self) -> int:
        """Number of links that led to it from what its query found; 0 for a chunk that was retrieved."""
        return int(self._number("link_hop") or 0)

    @property
    def skipped(self) -> SkipReason | None:
        """Why the supplementary question was not asked; None if it was, or if there is none."""
        given = self.metadata.get("skipped")
        return next((reason for reason in get_args(SkipReason) if reason == given), None)

    @property
    def granted_in(self) -> tuple[int, int] | None:
        """Round of the search in which its supplementary question was granted, from 1, and the place in it, from 0."""
        search_round, priority = self.metadata.get("round"), self.metadata.get("priority")
        return (search_round, priority) if isinstance(search_round, int) and isinstance(priority, int) else None

    @property
    def sub_answer(self) -> str:
        """Answer of the sub-run, refusals included; ``""`` until there is one, and for one that was cut off."""
        return self._text("sub_answer")

    @property
    def sub_run_error(self) -> str:
        """Error that kept the sub-run from answering; ``""`` without one."""
        return self._text("sub_run_error")

    @property
    def budget_spent(self) -> bool:
        """True if the spent budget left the chunk unjudged or unfiltered, or its question unwritten or unanswered.

        The last chunk of a query is marked too if the spent budget ended the search or the reading early.
        """
        spent = bool(self.metadata.get("budget_spent"))
        return spent or (self.verdict == "cancelled" and self.skipped != "stop")

    @property
    def spent_limit(self) -> LimitName | None:
        """The limit that was reached where ``budget_spent`` is true; None where no limit was."""
        given = self.metadata.get("budget_spent")
        return next((name for name in get_args(LimitName) if name == given), None)

    @property
    def shown_place(self) -> int | None:
        """Number of its passage in the evidence, from 1; None if the reader did not see the chunk."""
        given = self.metadata.get("shown_place")
        return given if isinstance(given, int) else None

    def _text(self, key: str) -> str:
        given = self.metadata.get(key)
        return "" if given is None else str(given)

    def _number(self, key: str) -> float | None:
        given = self.metadata.get(key)
        return float(given) if isinstance(given, int | float) else None


@dataclass(frozen=True, kw_only=True)
class QueryNode:
    """One thread: a query, its chunks, its answer and the thread's own model calls."""

    thread_id: str
    query: str
    parent_thread_id: str | None = None
    """None for the root of the tree."""
    depth: int = 0
    """0 for the root of the tree."""
    answer: str = ""
    """``""`` until there is one."""
    status: ThreadStatus = "open"
    answer_status: AnswerStatus | None = None
    """None until there is an answer."""
    error: str = ""
    """Error of the node that made the thread fail; ``""`` otherwise."""
    set_suffices: bool | None = None
    """Whether the judge says that the chunks together answer the query; None if it does not say."""
    evidence: str = ""
    """Evidence as shown to the reader."""
    usage: tuple[CallRecord, ...] = ()
    """The thread's own model calls, without those of its sub-runs."""
    searches: tuple[Search, ...] = ()
    """The thread's own searches, in the order of their ends."""
    started_at: str | None = None
    """Time at which the thread was first run, ISO 8601 in UTC; None if it has no checkpoint yet."""
    ended_at: str | None = None
    """Time of the thread's newest checkpoint; None if it has none yet."""
    chunks: tuple[ChunkNode, ...] = ()
    """By rank, best first."""
    linked_from: str = ""
    """Root thread of the tree that ran this thread and paid for it; ``""`` for a thread of this tree."""

    # The dataclass's own comparison, and pickle and deepcopy of nested nodes, would recurse once or more a level.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QueryNode):
            return NotImplemented
        return self is other or all(a == b for a, b in zip_longest(_rows(self), _rows(other)))

    def __hash__(self) -> int:
        return hash(self.thread_id)

    def __reduce__(self) -> tuple[Callable[[Sequence[_Row]], QueryNode], tuple[Sequence[_Row]]]:
        return _tree_of, ([*_rows(self)],)

    @property
    def handed_on(self) -> str:
        """Its answer as the query above reads it: ``""`` if a filter or a limit of length cut it off."""
        return handed_on(self.answer, self.usage)

    @property
    def shown_chunks(self) -> tuple[ChunkNode, ...]:
        """Chunks shown to the reader, in the order of the evidence; empty before there is evidence."""
        places = [(chunk.shown_place, chunk) for chunk in self.chunks if chunk.shown_place is not None]
        return tuple(chunk for _, chunk in sorted(places, key=itemgetter(0)))

    def depth_of(self, chunk: ChunkNode) -> int:
        """Return the depth of one of its chunks: the depth of the query, plus the round that found the chunk."""
        return self.depth + chunk.round

    @property
    def paid(self) -> tuple[CallRecord, ...]:
        """The thread's own model calls, as far as this tree made them: none of a linked thread."""
        return () if self.linked_from else self.usage

    @property
    def caveats(self) -> dict[CaveatKind, int]:
        """What makes replies to the thread's own model calls worse than they look, with counts; mostly empty."""
        return count_caveats(self.usage)

    @property
    def cost(self) -> UsageTotals:
        """Usage of the thread's own model calls."""
        return total_usage(self.usage)


def walk_queries(root: QueryNode) -> Iterator[QueryNode]:
    """Yield every query node of the tree, parents before children, siblings by the rank of their chunks."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(below for chunk in reversed(node.chunks) for below in reversed(chunk.sub_runs))


def fold_queries(root: QueryNode, make: Callable[[QueryNode, list[list[T]]], T]) -> T:
    """Compute a value of each query from those of its sub-runs, the deepest queries first, without recursion.

    Args:
        root: The query whose value is returned.
        make: Returns the value of a query, given for each of its chunks the values of the sub-runs.
    """
    made: dict[int, T] = {}
    for node in reversed([*walk_queries(root)]):
        made[id(node)] = make(node, [[made[id(each)] for each in chunk.sub_runs] for chunk in node.chunks])
    return made[id(root)]


_Row = tuple[dict[str, object], list[tuple[dict[str, object], int]]]
"""The fields of a query without its chunks, and of each chunk its own without the sub-runs, with their number."""


def _rows(root: QueryNode) -> Iterator[_Row]:
    """Yield a tree as a flat list, in the order of ``walk_queries``."""
    for node in walk_queries(root):
        chunks = [(_fields_of(chunk, "sub_runs"), len(chunk.sub_runs)) for chunk in node.chunks]
        yield _fields_of(node, "chunks"), chunks


def _fields_of(node: QueryNode | ChunkNode, left_out: str) -> dict[str, object]:
    return {each.name: getattr(node, each.name) for each in fields(node) if each.name != left_out}


def _tree_of(rows: Sequence[_Row]) -> QueryNode:
    """Build the tree of ``_rows``."""
    waiting: list[QueryNode] = []
    for query, chunks in reversed(rows):
        nodes = []
        for chunk, count in chunks:
            nodes.append(ChunkNode(**chunk, sub_runs=tuple(waiting.pop() for _ in range(count))))  # type: ignore[arg-type]
        waiting.append(QueryNode(**query, chunks=tuple(nodes)))  # type: ignore[arg-type]
    return waiting.pop()


def walk_chunks(root: QueryNode) -> Iterator[tuple[QueryNode, ChunkNode]]:
    """Yield (query node, chunk node) for every chunk: a chunk, then those of its sub-runs, then the next chunk."""
    stack = [(root, chunk) for chunk in reversed(root.chunks)]
    while stack:
        parent, chunk = stack.pop()
        yield parent, chunk
        for sub_run in reversed(chunk.sub_runs):
            stack.extend((sub_run, below) for below in reversed(sub_run.chunks))


def walk_shared(root: QueryNode) -> Iterator[tuple[QueryNode, ChunkNode, QueryNode]]:
    """Yield (query node, its chunk, query node from whose answer the chunk takes its own) for every shared question."""
    queries = {node.thread_id: node for node in walk_queries(root)}
    for parent, chunk in walk_chunks(root):
        if shared := queries.get(chunk.shared_thread_id):
            yield parent, chunk, shared
