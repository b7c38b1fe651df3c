"""The search tree of a question: read from checkpoints or JSON, exported and drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from ...modules.calls.record import CallRecord, count_caveats
from ...modules.calls.transcripts import Transcript, TranscriptPlace
from ...modules.calls.usage import UsageTotals, total_usage
from ...modules.caveats.kinds import CaveatKind
from ...modules.errors import LimitName
from ..drawing.drawn import DrawnTree, TreeToDraw
from ..drawing.marks import UNMARKED, Mark, Marks
from ..drawing.words import format_usage
from ..tree.alignment import align_queries
from ..tree.counts import SavedBySharing, count_saved_by_sharing, count_verdicts
from ..tree.documents import Documents, build_frame, build_graph, draw_graphml
from ..tree.fork_record import Fork
from ..tree.history import StateHistory, aread_tree, read_tree
from ..tree.nodes import (
    ChunkNode,
    QueryNode,
    VerdictLabel,
    walk_chunks,
    walk_queries,
)
from .model_calls import ModelCalls, calls_of, transcripts_of
from .tree_diff import TreeDiff, changed_settings

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class SearchTree(DrawnTree):
    """One question with all its chunks, verdicts, sub-runs and model calls.

    >>> tree = SearchTree(root=QueryNode(thread_id="t", query="Who wrote it?", answer="Cao Xueqin", status="finished"))
    >>> print(tree)
    Q: Who wrote it?
    A: Cao Xueqin  (no model calls)
    1 query · 0 chunks · no model calls
    verdicts: none
    >>> SearchTree.from_json(tree.to_json()) == tree
    True
    """

    fingerprint: Mapping[str, str] = field(default_factory=dict)
    """Everything that determined the run, by name; empty if the run saved no fingerprint."""
    root: QueryNode
    transcripts: Annotated[TranscriptPlace | None, Field(exclude=True)] = field(default=None, compare=False, repr=False)
    """Where the texts of its model calls are, as far as they were recorded; not part of the JSON document."""

    @classmethod
    def from_history(cls, graph: StateHistory, thread_id: str) -> SearchTree:
        """Read the tree of a finished, failed or open thread from its checkpoints; no model is called.

        It reads the history of each thread once.

        Raises:
            UnknownThread: The thread does not exist.
        """
        root, fingerprint = read_tree(graph, thread_id)
        return cls(root=root, fingerprint=fingerprint, transcripts=transcripts_of(graph))

    @classmethod
    async def afrom_history(cls, graph: StateHistory, thread_id: str) -> SearchTree:
        """Async twin of ``from_history``."""
        root, fingerprint = await aread_tree(graph, thread_id)
        return cls(root=root, fingerprint=fingerprint, transcripts=transcripts_of(graph))

    @classmethod
    def from_json(cls, text: str) -> SearchTree:
        """Read a tree that ``to_json`` wrote; the two are equal in every field.

        Raises:
            LoadingError: The text is no JSON, no search tree, damaged, or of another format.
        """
        return TREE_DOCUMENTS.load(text)

    def query_nodes(self) -> Iterator[QueryNode]:
        """Yield every query node, parents before children."""
        return walk_queries(self.root)

    def chunk_nodes(self) -> Iterator[ChunkNode]:
        """Yield every chunk node: a chunk, then the chunks of its sub-run, then the next chunk of the same query."""
        return (chunk for _, chunk in walk_chunks(self.root))

    @property
    def depth(self) -> int:
        """Level of the deepest query, or last round that found a new chunk; 0 without sub-runs and further rounds."""
        deepest = max(max((node.depth, *map(node.depth_of, node.chunks))) for node in self.query_nodes())
        return deepest - self.root.depth

    @property
    def sub_runs(self) -> int:
        """Number of query nodes below the root."""
        return sum(1 for _ in self.query_nodes()) - 1

    @property
    def usage(self) -> UsageTotals:
        """Usage of the whole tree, without that of linked threads."""
        return total_usage(record for node in self.query_nodes() for record in node.paid)

    @property
    def caveats(self) -> dict[CaveatKind, int]:
        """What makes replies of the whole tree worse than they look, with counts of calls; mostly empty."""
        return count_caveats(record for node in self.query_nodes() for record in node.usage)

    @property
    def fork(self) -> Fork | None:
        """The tree that this one is a fork of, and what was changed; None for other trees."""
        return Fork.of_fingerprint(self.fingerprint)

    @property
    def saved(self) -> UsageTotals:
        """Usage that the tree did not pay for: of linked threads, and of a fork's calls taken over from its origin."""
        linked = (record for node in self.query_nodes() if node.linked_from for record in node.usage)
        kept = (record for node in self.query_nodes() for record in node.paid if record["cached"])
        taken_over = (CallRecord(**{**record, "cached": False}) for record in kept if self.fork)
        return total_usage((*linked, *taken_over))

    def calls(self) -> ModelCalls:
        """Return the model calls of the tree, query by query, with what was sent and what came as far as recorded.

        It reads the file of transcripts, and blocks for some milliseconds.

        Raises:
            SettingsError: The transcripts cannot be read.
        """
        return ModelCalls(calls_of(self.root, self.transcripts))

    def read_transcripts(self) -> dict[str, Transcript]:
        """Read what was recorded of the tree's calls, by call id; it blocks.

        Raises:
            SettingsError: The transcripts cannot be read.
        """
        ids = [record["call_id"] for node in self.query_nodes() for record in node.usage]
        recorded = self.transcripts.read(ids) if self.transcripts else []
        return {call.record["call_id"]: call.transcript for call in recorded}

    @property
    def verdict_counts(self) -> dict[VerdictLabel, int]:
        """Number of chunk nodes by verdict; every label is a key."""
        return count_verdicts(self.root)

    @property
    def saved_by_sharing(self) -> SavedBySharing:
        """Sub-runs and model calls that were saved by taking answers from runs of equal questions."""
        return count_saved_by_sharing(self.root)

    @property
    def budget_spent(self) -> bool:
        """True if a limit of the tree was reached, so that the answer rests on a part of the evidence."""
        return any(chunk.budget_spent for chunk in self.chunk_nodes()) or bool(self.spent_limits)

    @property
    def spent_limits(self) -> frozenset[LimitName]:
        """The limits that were reached: calls, sub_runs, tokens, cost or seconds; ``stopped`` for a stop."""
        chunks = (chunk.spent_limit for chunk in self.chunk_nodes())
        searches = (search.get("spent_limit") for query in self.query_nodes() for search in query.searches)
        return frozenset(limit for limit in (*chunks, *searches) if limit is not None)

    def diff(self, other: SearchTree) -> TreeDiff:
        """Compare with another tree, aligned by query and chunk: where they part, and what differs from there on."""
        return TreeDiff(
            root=align_queries(self.root, other.root),
            usage_a=self.usage,
            usage_b=other.usage,
            settings=changed_settings(self.fingerprint, other.fingerprint),
        )

    @property
    def _marks(self) -> Marks:
        """What drawings say besides the tree: the origin of a fork, and what it saved."""
        if self.fork is None:
            return UNMARKED
        remarks, mark = (str(self.fork), f"saved: {format_usage(self.saved)}"), Mark(word=f"changed: {self.fork.words}")
        changed, chunk_id = self.fork.depth, self.fork.chunk_id
        own = (node for node in self.query_nodes() if not node.linked_from and node.depth == changed)
        return Marks(remarks=remarks, chunks={(node.thread_id, chunk_id): mark for node in own} if chunk_id else {})

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the tree as a JSON document that names its format.

        Raises:
            ValueError: Some metadata holds a number that is not finite, which JSON cannot write.
        """
        return TREE_DOCUMENTS.dump(self, indent=indent)

    def to_networkx(self) -> nx.DiGraph:
        """Return a graph with edges from queries to their chunks and from chunks to their sub-questions.

        Attributes are scalars.
        """
        return build_graph(self.root)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each chunk of each query, in the order of the tree.

        Columns: ``query``, its ``depth`` (of the chunk's round), the chunk's ``rank`` from 1, ``source``, ``verdict``
        ("0", "1", "2" or why there is none), ``score``, ``p_needed``, ``shown`` (whether the query's reader saw it),
        ``sub_question`` and ``sub_answer``, ``text``, ``chunk_id`` and ``thread_id``. Needs the extra ``eval``.

        Raises:
            DependencyError: pandas is not installed.
        """
        return build_frame(self.root)

    def to_graphml(self) -> str:
        """Return the graph of ``to_networkx`` as GraphML text."""
        return draw_graphml(self.root)

    def _to_draw(self) -> TreeToDraw:
        return TreeToDraw(self.root, self._marks, self.fingerprint, self.read_transcripts)

    def __repr__(self) -> str:
        # Notebooks save the repr with the page, and that of the fields would be as long as all chunks together.
        root = self.root
        return f"SearchTree(thread_id={root.thread_id!r}, query={root.query!r}, sub_runs={self.sub_runs})"


TREE_DOCUMENTS = Documents(SearchTree, "search-tree", remedy="build the tree again from its checkpoints")
