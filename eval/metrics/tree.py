"""What a search tree looked like and what it cost, in numbers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ...graphs.rag.search_tree import SearchTree
from ...graphs.tree.nodes import QueryNode


@dataclass(frozen=True, kw_only=True)
class TreeFigures:
    """Counts of one search tree, sub-runs included."""

    sub_runs: int
    """Queries below the root."""
    depth: int
    """Level of the deepest query that was reached, or the last round that found a new chunk; 0 without either."""
    chunks: int
    """Chunk nodes: what all queries retrieved, a chunk counting once for each query."""
    duplicate_chunks: int
    """Chunk nodes whose chunk another query had retrieved already: ``chunks`` less the number of different chunks."""
    verdicts_2: int
    """Chunk nodes that were said to answer their query alone."""
    verdicts_1: int
    """Chunk nodes that were said to hold a needed fact."""
    verdicts_0: int
    """Chunk nodes that were said not to help."""
    unknown_verdicts: int
    """Chunk nodes on which the judge failed."""
    cancelled_verdicts: int
    """Chunk nodes that were not judged since the budget was spent."""
    pending_verdicts: int
    """Chunk nodes that were not judged: all of them where the graph has no judge."""
    refused_sub_answers: int
    """Queries below the root whose answer was a refusal."""
    chat_calls: int
    """Chat calls that a model answered, or failed to; those that the cache answered are not among them."""
    cached_chat_calls: int
    """Chat calls that the cache answered."""
    prompt_tokens: int
    """Of ``chat_calls``."""
    completion_tokens: int
    """Of ``chat_calls``."""
    cached_seconds: float = 0.0
    """Seconds by which cached calls shortened the longest chain of calls that had to wait for each other."""

    @property
    def unknown_share(self) -> float | None:
        """Unknown verdicts by verdicts asked for and paid, in [0, 1], lower is better; None where there are none."""
        asked = self.verdicts_0 + self.verdicts_1 + self.verdicts_2 + self.unknown_verdicts
        return self.unknown_verdicts / asked if asked else None


def figures_of(tree: SearchTree) -> TreeFigures:
    """The figures of a finished, failed or open tree; calls no model and reads nothing."""
    queries = list(tree.query_nodes())
    chunk_ids = [chunk.chunk_id for chunk in tree.chunk_nodes()]
    verdicts, usage = tree.verdict_counts, tree.usage
    return TreeFigures(
        sub_runs=tree.sub_runs,
        depth=tree.depth,
        chunks=len(chunk_ids),
        duplicate_chunks=len(chunk_ids) - len(set(chunk_ids)),
        verdicts_2=verdicts["2"],
        verdicts_1=verdicts["1"],
        verdicts_0=verdicts["0"],
        unknown_verdicts=verdicts["unknown"],
        cancelled_verdicts=verdicts["cancelled"],
        pending_verdicts=verdicts["pending"],
        refused_sub_answers=sum(query.answer_status == "refused" for query in queries[1:]),
        chat_calls=usage["llm_calls"],
        cached_chat_calls=sum(call["kind"] == "chat" and call["cached"] for query in queries for call in query.usage),
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
        cached_seconds=round(_longest_chain_s(tree.root) - _longest_chain_s(tree.root, cached=False), 3),
    )


def _longest_chain_s(node: QueryNode, *, cached: bool = True) -> float:
    """Seconds of the calls of a thread that wait for each other; verdicts are had at once, and so are sub-runs.

    Without ``cached``, calls that the cache answered take no time.
    """
    verdicts: defaultdict[str, float] = defaultdict(float)
    others_s = 0.0
    for call in node.usage:
        seconds = call["seconds"] if call["kind"] == "chat" and (cached or not call["cached"]) else 0.0
        if call["chunk_id"]:
            verdicts[call["chunk_id"]] += seconds
        else:
            others_s += seconds
    below = [_longest_chain_s(chunk.child, cached=cached) for chunk in node.chunks if chunk.child is not None]
    return max(verdicts.values(), default=0.0) + max(below, default=0.0) + others_s
