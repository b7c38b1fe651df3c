"""What the saved state of a thread says of its search: its candidates, its findings, its grant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from langchain_core.documents import Document
from langgraph.types import PregelTask, StateSnapshot

from ...modules.calls.budget import TreeBudget
from ...modules.calls.ledger import NO_SHARE, ExpectedSpend
from ...modules.retriever.contract import Embeds
from ..search.candidate import Ancestor, Candidate, SearchLimits
from ..search.findings import Findings, FoundChunk
from ..search.frontier import Frontier, Grant
from ..search.sharing import SharedRuns
from ..search.sharing_rule import Off, Similar, sharing_rule
from .context import RagContext, RunContext
from .fingerprint import thread_of_try
from .state import RagState

PLAN, ASK = "plan_sub_runs", "call_new_rag"
"""Names of the nodes that plan sub-questions and ask them."""


def frontier_of(services: RagContext, budget: TreeBudget, root: str, query: str, fingerprint: str) -> Frontier:
    """Return the frontier of a run of a root thread; ``fingerprint`` is the digest of the run's."""
    limits = services.limits
    return Frontier(
        services.policy,
        SearchLimits(max_calls=limits.max_llm_calls, max_sub_runs=limits.max_sub_runs, width=limits.width),
        budget,
        root=root,
        thread_of_try=lambda each: thread_of_try(each.thread_id, each.chunk_id, each.attempt, fingerprint),
        shared=_shared_runs(services, root, query),
    )


def _shared_runs(services: RagContext, root: str, query: str) -> SharedRuns | None:
    rule = sharing_rule(services.limits.sharing)
    if isinstance(rule, Off):
        return None
    if not isinstance(rule, Similar) or not isinstance(services.retriever, Embeds):
        return SharedRuns(root, query)
    return SharedRuns(root, query, at=rule.at, embed=services.retriever.aembed)


def candidate_of(chunk: Document, context: RunContext, *, calls: int, share: ExpectedSpend = NO_SHARE) -> Candidate:
    """Return the candidate of a chunk with a sub-question; ``calls`` and ``share`` are what its sub-run may take."""
    metadata = chunk.metadata
    chunk_id, next_query = str(metadata["chunk_id"]), str(metadata["next_query"])
    return Candidate(
        thread_id=context.thread_id,
        chunk_id=chunk_id,
        next_query=next_query,
        path=(*context.path, chunk_id, next_query),
        p_needed=metadata.get("p_needed"),
        is_calibrated=metadata.get("p_calibrated") is True,
        retrieval_score=metadata.get("retrieval_score"),
        rank=int(metadata["rank"]),
        ancestors=context.ancestors,
        calls=calls,
        share=share,
    )


def as_ancestor(candidate: Candidate) -> Ancestor:
    """Return a candidate as the ancestor of what its sub-run finds."""
    return Ancestor(chunk_id=candidate.chunk_id, rank=candidate.rank, p=candidate.p)


def findings_of(state: RagState) -> Findings:
    """Return what the judged chunks of a thread say of its query."""
    chunks = state.get("similar_chunks", [])
    return Findings.of(map(_found, chunks), set_suffices=state.get("set_suffices"), p_suffices=state.get("p_suffices"))


def _found(chunk: Document) -> FoundChunk:
    metadata = chunk.metadata
    return FoundChunk(
        chunk_id=str(metadata["chunk_id"]),
        score=metadata.get("score"),
        confidence=metadata.get("score_confidence"),
        p_needed=metadata.get("p_needed"),
    )


def sub_runs_to_come(snapshot: StateSnapshot) -> list[str] | None:
    """Return the chunks whose sub-questions a resumed thread will still ask; None if they are not planned yet.

    It goes by what is saved: LangGraph runs no task again whose result was saved before the process was killed.
    """
    by_node: dict[str, list[PregelTask]] = {}
    for task in snapshot.tasks:
        by_node.setdefault(task.name, []).append(task)
    if ASK in by_node:
        settled = {patch["chunk_id"] for task in by_node[ASK] for patch in _patches_of(task)}
        linked = _linked(snapshot.values.get("similar_chunks", []))
        return [chunk_id for chunk_id in linked if chunk_id not in settled]
    if PLAN in by_node:
        patches = [patch for task in by_node[PLAN] for patch in _patches_of(task)]
        if any("link_state" in cast(Mapping[str, object], patch["changes"]) for patch in patches):
            return None  # links are followed first, and the node comes again
        has_run = any(task.result is not None for task in by_node[PLAN])
        return [str(patch["chunk_id"]) for patch in patches] if has_run else None
    return [] if {"augment", "generate"} & by_node.keys() else None


def _patches_of(task: PregelTask) -> Sequence[Mapping[str, object]]:
    written = task.result.get("similar_chunks") if isinstance(task.result, Mapping) else None
    return cast(Sequence[Mapping[str, object]], written or ())


def _linked(chunks: Sequence[Document]) -> list[str]:
    return [str(each.metadata["chunk_id"]) for each in chunks if each.metadata.get("next_rag_thread_id")]


def saved_grant(snapshot: StateSnapshot) -> Grant | None:
    """Return the grant that a sub-run saved with its checkpoints; None for one that was granted without a round."""
    saved = cast(Mapping[str, object], snapshot.metadata or {})
    if "round_digests" not in saved:
        return None
    return Grant(
        round=int(str(saved["round"])), priority=int(str(saved["priority"])), round_digests=str(saved["round_digests"])
    )
