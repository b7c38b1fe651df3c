"""Taking in the passages that useful chunks are linked with: candidates for the judge without a sub-question.

They become chunks of the same query, on the same thread, so that a resumed run takes the same steps. A passage that the
query has already is not taken in again, so that circles of links end.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document
from langgraph.runtime import Runtime
from langgraph.types import Send

from ...modules.errors import BudgetSpent
from ...modules.judge.contract import judges_sets
from ..search.expansion_rule import Linked, expansion_rule
from ..threads.candidates import findings_of
from ..threads.context import RunContext, emit
from ..threads.state import ChunkPatch, RagState
from .judging import sends_to_judges
from .nodes import reset_chunk

PLANNED, FOLLOWED = "planned", "followed"
"""Values of a chunk's ``link_state``."""


def links_to_plan(state: RagState, context: RunContext) -> list[ChunkPatch]:
    """Return the patches that plan the links of useful chunks; none where links are off, or the query is closed."""
    rule = expansion_rule(context.services.limits.expansion)
    if not isinstance(rule, Linked) or context.services.stop.closes(findings_of(state)):
        return []
    return [
        ChunkPatch(chunk_id=_id_of(chunk), changes={"link_state": PLANNED})
        for chunk in state["similar_chunks"]
        if (chunk.metadata["score"] or 0) >= 1 and not chunk.metadata.get("link_state") and _hop(chunk) < rule.hops
    ]


def has_planned_links(state: RagState) -> bool:
    """Return whether links are to be followed next."""
    return any(chunk.metadata.get("link_state") == PLANNED for chunk in state["similar_chunks"])


async def follow_links(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Add the passages that the planned chunks are linked with, unjudged, ranked behind the others.

    Chunks with better scores come first, then those with better ranks, and each gives one passage in turn. Once the
    time of the tree is over, none are added.
    """
    context, chunks = runtime.context, state["similar_chunks"]
    rule, links = expansion_rule(context.services.limits.expansion), context.services.links
    if not isinstance(rule, Linked) or links is None:
        raise TypeError("this thread follows links: give RagContext links")
    planned = [chunk for chunk in chunks if chunk.metadata.get("link_state") == PLANNED]
    planned.sort(key=lambda chunk: (-(chunk.metadata["score"] or 0), chunk.metadata["rank"]))
    known = {_id_of(chunk) for chunk in chunks}
    try:
        async with context.budget.in_time():
            found = await links.linked([_id_of(each) for each in planned], without=known, most=rule.neighbours)
    except BudgetSpent:
        found = []
    hops, rank = {_id_of(each): _hop(each) for each in planned}, 1 + max(chunk.metadata["rank"] for chunk in chunks)
    added = [
        reset_chunk(
            each.chunk,
            retrieval_score=None,
            rank=place,
            recursion_depth=context.depth,
            linked_from=each.linked_from,
            linked_by=each.name,
            link_hop=hops[each.linked_from] + 1,
        )
        for place, each in enumerate(found, start=rank)
    ]
    ids = [_id_of(chunk) for chunk in added]
    emit(runtime, "chunks_linked", node="follow_links", query=state["query"], chunk_ids=ids)
    followed = [ChunkPatch(chunk_id=_id_of(each), changes={"link_state": FOLLOWED}) for each in planned]
    return {"similar_chunks": [*followed, *added]}


async def to_linked_judges(state: RagState, runtime: Runtime[RunContext]) -> list[Send] | str:
    """Route to the judges of linked chunks; a judge of sets reads the useful chunks with them once more.

    Without new chunks, to ``plan_sub_runs``.
    """
    chunks = state["similar_chunks"]
    fresh = [chunk for chunk in chunks if _is_unjudged(chunk)]
    if not fresh:
        return "plan_sub_runs"
    judge = runtime.context.services.judge
    if judge is not None and judges_sets(judge):
        fresh = [chunk for chunk in chunks if _is_unjudged(chunk) or (chunk.metadata["score"] or 0) >= 1]
    return sends_to_judges(fresh, state, runtime.context)


def is_linked(chunk: Document) -> bool:
    """Return whether a chunk was taken in by a link."""
    return bool(chunk.metadata.get("linked_from"))


def most_linked(context: RunContext) -> Sequence[int]:
    """Return the most chunks that each hop of a query takes in; empty where links are off."""
    rule = expansion_rule(context.services.limits.expansion)
    return [rule.neighbours] * rule.hops if isinstance(rule, Linked) else []


def _is_unjudged(chunk: Document) -> bool:
    return is_linked(chunk) and chunk.metadata["verdict"] == "pending"


def _hop(chunk: Document) -> int:
    return int(chunk.metadata.get("link_hop") or 0)


def _id_of(chunk: Document) -> str:
    return str(chunk.metadata["chunk_id"])
