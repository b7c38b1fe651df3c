"""What is known to be right in the tree of one answer: by supporting facts of the data set, and by labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ...graphs.rag.search_tree import SearchTree
from ...graphs.tree.nodes import ChunkNode, QueryNode, walk_queries
from ...modules.judge.contract import Score
from ...modules.reader.refusals import is_refusal
from ..datasets.questions import EvalQuestion
from ..labels.store import passage_id
from ..metrics.retrieval import gold_mark
from ..rows.store import RunRow

GoldSource = Literal["supporting", "label"]


@dataclass(frozen=True, kw_only=True)
class GoldBranch:
    """A supplementary question with the search that it led to."""

    node: QueryNode
    """The query whose chunk asked."""
    chunk: ChunkNode
    query: str
    """The supplementary question."""
    child: QueryNode
    found_gold: bool | None
    """Whether the search found gold that the queries above had not found; None if that cannot be known."""


@dataclass(frozen=True, kw_only=True)
class GoldTree:
    """The search tree of one answer, with the right scores of its chunks."""

    row: RunRow
    question: EvalQuestion
    tree: SearchTree
    labels: Mapping[str, Score] = field(default_factory=dict)
    """Scores by hand, by ``passage_id``."""

    def score_of(self, node: QueryNode, chunk: ChunkNode) -> tuple[Score, GoldSource] | None:
        """Return the right score of a chunk for its query; None if unknown.

        A label goes before supporting facts, which are known for the question alone: a chunk with all of them scores 2,
        with some 1, with none 0.
        """
        labelled = self.labels.get(passage_id(node.query, chunk.text))
        if labelled is not None:
            return labelled, "label"
        if node is not self.tree.root or not self.question.supporting:
            return None
        held = self.gold_in([chunk])
        score: Score = 2 if len(held) == len(set(self.question.supporting)) else 1 if held else 0
        return score, "supporting"

    def gold_in(self, chunks: Iterable[ChunkNode]) -> frozenset[str]:
        """Return the keys of the gold documents whose facts stand in the chunks."""
        return frozenset(
            key
            for chunk in chunks
            for key in self._keys.get(chunk.chunk_id, ())
            if gold_mark(self.question, key, chunk.text)
        )

    def branches(self) -> Iterator[GoldBranch]:
        """Yield the supplementary questions of the tree that were searched for."""
        waiting = self._asked_below(self.tree.root, frozenset())
        while waiting:  # without recursion
            node, chunk, sub_run, known = waiting.pop()
            found = self._found_gold(sub_run, known)
            yield GoldBranch(node=node, chunk=chunk, query=sub_run.query, child=sub_run, found_gold=found)
            waiting += self._asked_below(sub_run, known)

    def shown_gold(self) -> frozenset[str]:
        """Return the keys of the gold documents that the answer rests on.

        They are in chunks that the reader saw, or in those behind a supplementary answer that it saw.
        """
        gold, waiting = frozenset[str](), [self.tree.root]
        while waiting:
            shown = waiting.pop().shown_chunks
            gold |= self.gold_in(shown)
            below = (each for chunk in shown for each in chunk.sub_runs)
            waiting += [each for each in below if not is_refusal(each.handed_on)]
        return gold

    def _asked_below(
        self, node: QueryNode, known: frozenset[str]
    ) -> list[tuple[QueryNode, ChunkNode, QueryNode, frozenset[str]]]:
        """Return the query, chunk and sub-run of each question of a query, last first, with the gold known there."""
        known |= self.gold_in(node.chunks)
        asked = [(node, chunk, sub_run, known) for chunk in node.chunks for sub_run in chunk.sub_runs if sub_run.query]
        return asked[::-1]

    def _found_gold(self, child: QueryNode, known: frozenset[str]) -> bool | None:
        if self.question.supporting:
            return any(self.gold_in(node.chunks) - known for node in walk_queries(child))
        labelled = [self.labels.get(passage_id(child.query, chunk.text)) for chunk in child.chunks]
        if any(score == 2 for score in labelled):
            return True
        return False if labelled and all(score == 0 for score in labelled) else None

    @cached_property
    def _keys(self) -> Mapping[str, frozenset[str]]:
        return self.row.keys_by_chunk
