"""The search tree's nodes as plain data: a query node per thread, below it a chunk node per retrieved chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal, get_args

from ...modules.calls.usage import CallRecord, UsageTotals, total_usage
from ...modules.judge.contract import Score, VerdictStatus
from ..threads.snapshots import ThreadStatus
from ..threads.state import AnswerStatus, JsonScalar

VerdictLabel = Literal["2", "1", "0", "unknown", "cancelled", "pending"]
"""A verdict in one word: the score where there is one, else why there is none."""
VERDICT_LABELS: tuple[VerdictLabel, ...] = get_args(VerdictLabel)


@dataclass(frozen=True, kw_only=True)
class ChunkNode:
    """One retrieved chunk, what the judge said of it, and the sub-run that it led to."""

    chunk_id: str
    text: str
    metadata: Mapping[str, JsonScalar]
    """The chunk's metadata as it stands in the checkpoint (keys: see the design's glossary)."""
    child: QueryNode | None = None
    """The thread that asked this chunk's sub-question; None where none was planned."""

    @property
    def verdict(self) -> VerdictStatus:
        """How the judging went; "pending" for a chunk that carries no verdict."""
        given = self.metadata.get("verdict")
        return next((status for status in get_args(VerdictStatus) if status == given), "pending")

    @property
    def score(self) -> Score | None:
        """2 = answers the query alone, 1 = holds a needed fact, 0 = does not help; None without a judged verdict."""
        given = self.metadata.get("score")
        return next((score for score in get_args(Score) if score == given), None) if self.verdict == "judged" else None

    @property
    def verdict_label(self) -> VerdictLabel:
        """The score as text, else the verdict's status; a judged chunk without a score counts as unknown."""
        if self.verdict != "judged":
            return self.verdict
        labels: dict[Score | None, VerdictLabel] = {2: "2", 1: "1", 0: "0"}
        return labels.get(self.score, "unknown")

    @property
    def score_confidence(self) -> float | None:
        """The judge's own probability of its score, in [0, 1]; None where it gives none."""
        return self._number("score_confidence")

    @property
    def retrieval_score(self) -> float | None:
        """The retriever's score, higher is better; comparable among the chunks of one query only."""
        return self._number("retrieval_score")

    @property
    def rank(self) -> int | None:
        """Place among the chunks of its query as the retriever ordered them, best first."""
        given = self.metadata.get("rank")
        return given if isinstance(given, int) else None

    @property
    def found_by(self) -> str:
        """What the round that found it searched for; ``""`` where a system does not search in rounds."""
        return self._text("found_by")

    @property
    def round(self) -> int:
        """Which round of its query found it, from 0 on; 0 where a system does not search in rounds."""
        given = self.metadata.get("recursion_depth")
        return given if self.found_by and isinstance(given, int) else 0

    @property
    def source(self) -> str:
        """The file or record that the chunk was cut from, relative to the index root."""
        return self._text("source")

    @property
    def reason(self) -> str:
        """Why the judge scored so, in its own words; ``""`` where it gives none."""
        return self._text("reason")

    @property
    def next_query(self) -> str:
        """The sub-question of a score of 1; ``""`` where there is none."""
        return self._text("next_query")

    @property
    def next_rag_thread_id(self) -> str:
        """The thread that asks the sub-question; ``""`` until one is planned."""
        return self._text("next_rag_thread_id")

    @property
    def sub_answer(self) -> str:
        """What the sub-run answered, refusals included; ``""`` until it has."""
        return self._text("sub_answer")

    @property
    def sub_run_error(self) -> str:
        """Why the sub-run gave no answer; ``""`` if nothing went wrong."""
        return self._text("sub_run_error")

    @property
    def budget_spent(self) -> bool:
        """True where the spent budget left the chunk unjudged, or its sub-question unwritten, unasked or unanswered.

        The last chunk of a query says so too where its search or its reading ended early.
        """
        return self.verdict == "cancelled" or self.metadata.get("budget_spent") is True

    @property
    def shown_place(self) -> int | None:
        """Number of its passage in the evidence, from 1 on; None where the reader was not shown it."""
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
    """One thread: one query, its chunks, its answer and what the thread itself cost."""

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
    """What the node raised that made the thread fail; ``""`` otherwise."""
    evidence: str = ""
    """The evidence as the reader saw it."""
    usage: tuple[CallRecord, ...] = ()
    """The thread's own model calls, those of its sub-runs not included."""
    started_at: str | None = None
    """Time of the thread's first checkpoint, ISO 8601 in UTC; None if it has none yet."""
    ended_at: str | None = None
    """Time of the thread's newest checkpoint; None if it has none yet."""
    chunks: tuple[ChunkNode, ...] = ()
    """By rank, best first."""

    @property
    def shown_chunks(self) -> tuple[ChunkNode, ...]:
        """The chunks that its reader was shown, in that order; none before there is evidence to read."""
        places = [(chunk.shown_place, chunk) for chunk in self.chunks if chunk.shown_place is not None]
        return tuple(chunk for _, chunk in sorted(places, key=itemgetter(0)))

    def depth_of(self, chunk: ChunkNode) -> int:
        """Depth in the tree at which one of its chunks was found: its own, and one more for each further round."""
        return self.depth + chunk.round

    @property
    def cost(self) -> UsageTotals:
        """The thread's own model calls summed up."""
        return total_usage(self.usage)


def walk_queries(root: QueryNode) -> Iterator[QueryNode]:
    """Every query node of the tree: a node before what is below it, siblings by the rank of their chunks."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(chunk.child for chunk in reversed(node.chunks) if chunk.child is not None)


def walk_chunks(root: QueryNode) -> Iterator[tuple[QueryNode, ChunkNode]]:
    """Every chunk node with the query node that retrieved it: a chunk, then what is below it, then the next chunk."""
    stack = [(root, chunk) for chunk in reversed(root.chunks)]
    while stack:
        parent, chunk = stack.pop()
        yield parent, chunk
        if chunk.child is not None:
            stack.extend((chunk.child, below) for below in reversed(chunk.child.chunks))


def count_verdicts(root: QueryNode) -> dict[VerdictLabel, int]:
    """How many chunk nodes carry each verdict; every label is a key, in the order of ``VERDICT_LABELS``."""
    counts = dict.fromkeys(VERDICT_LABELS, 0)
    for _, chunk in walk_chunks(root):
        counts[chunk.verdict_label] += 1
    return counts
