"""Size and cost of a search tree in numbers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ...graphs.rag.search_tree import SearchTree
from ...graphs.tree.nodes import QueryNode, fold_queries


@dataclass(frozen=True, kw_only=True)
class TreeFigures:
    """Counts of one search tree, sub-runs included; ``dictionary.COLUMNS`` says what each one is."""

    sub_runs: int
    depth: int
    chunks: int
    duplicate_chunks: int
    verdicts_2: int
    verdicts_1: int
    verdicts_0: int
    unknown_verdicts: int
    cancelled_verdicts: int
    pending_verdicts: int
    refused_sub_answers: int
    llm_calls: int
    """As ``SearchTree.usage`` has them: without those that the cache answered, with those that are booked."""
    cached_llm_calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_seconds: float = 0.0
    """Seconds that the cache saved on the longest chain of dependent calls."""
    shared_questions: int = 0
    saved_sub_runs: int = 0
    saved_llm_calls: int = 0


def figures_of(tree: SearchTree) -> TreeFigures:
    """Count the nodes and calls of a finished, failed or open tree. Makes no calls."""
    queries = list(tree.query_nodes())
    chunk_ids = [chunk.chunk_id for chunk in tree.chunk_nodes()]
    verdicts, usage, saved = tree.verdict_counts, tree.usage, tree.saved_by_sharing
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
        llm_calls=usage["llm_calls"],
        cached_llm_calls=sum(call["kind"] == "chat" and call["cached"] for query in queries for call in query.usage),
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
        cached_seconds=round(_longest_chain_s(tree.root) - _longest_chain_s(tree.root, cached=False), 3),
        shared_questions=saved["questions"],
        saved_sub_runs=saved["sub_runs"],
        saved_llm_calls=saved["llm_calls"],
    )


def _longest_chain_s(root: QueryNode, *, cached: bool = True) -> float:
    """Add up the seconds of dependent calls, counting verdicts as parallel, and sub-runs too.

    Verdicts on linked chunks follow those on what led to them. ``cached=False`` counts calls answered by the cache as
    0 s.
    """

    def chain_s(node: QueryNode, below: list[list[float]]) -> float:
        verdicts_s, others_s = _own_seconds(node, cached=cached)
        return verdicts_s + max((each for runs in below for each in runs), default=0.0) + others_s

    return fold_queries(root, chain_s)


def _own_seconds(node: QueryNode, *, cached: bool) -> tuple[float, float]:
    """Return the longest time of verdicts that wait for each other, and the time of the other calls."""
    hops = {chunk.chunk_id: chunk.link_hop for chunk in node.chunks}
    verdicts: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    others_s = 0.0
    for call in node.usage:
        seconds = call["seconds"] if call["kind"] == "chat" and (cached or not call["cached"]) else 0.0
        if call["chunk_id"]:
            verdicts[hops.get(call["chunk_id"], 0)][call["chunk_id"]] += seconds
        else:
            others_s += seconds
    return sum(max(each.values()) for each in verdicts.values()), others_s
