"""The node that plans supplementary questions, and the route to those that ask them."""

from __future__ import annotations

import logging

from langchain_core.documents import Document
from langgraph.runtime import Runtime
from langgraph.types import Send

from ...modules.judge.contract import expected_calls
from ..search.expansion_rule import expansion_rule
from ..search.findings import Findings
from ..threads.amounts import expected_share, keep_for_answer
from ..threads.candidates import findings_of
from ..threads.context import RunContext, emit
from ..threads.fingerprint import sub_thread_id
from ..threads.state import CallNewRagState, ChunkPatch, RagState
from .linking import has_planned_links, is_linked, links_to_plan, most_linked

logger = logging.getLogger(__name__)


async def plan_sub_runs(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write the thread of each sub-question into its chunk before any of them is asked.

    Plans nothing where the stop closes the query, or on the deepest level. The judges' branches join here: a route
    behind a branch would see only that branch's verdict. Links that are to be followed come first, and the node again
    after them.
    """
    context = runtime.context
    if links := links_to_plan(state, context):
        return {"similar_chunks": links}
    patches: list[ChunkPatch] = []
    findings = findings_of(state)
    for chunk in chunks_to_expand(state["similar_chunks"], findings, context):
        chunk_id, next_query = str(chunk.metadata["chunk_id"]), str(chunk.metadata["next_query"])
        thread_id = sub_thread_id(context.thread_id, chunk_id, next_query, context.fingerprint)
        patches.append(ChunkPatch(chunk_id=chunk_id, changes={"next_rag_thread_id": thread_id}))
        emit(
            runtime,
            "sub_run_planned",
            node="plan_sub_runs",
            chunk_id=chunk_id,
            next_query=next_query,
            next_rag_thread_id=thread_id,
        )
    keep_for_answer(state, context, to_ask=len(patches))
    if context.frontier is not None:
        context.frontier.announce_candidates(context.thread_id, [each["chunk_id"] for each in patches], findings)
    return {"similar_chunks": patches}


def chunks_to_expand(chunks: list[Document], findings: Findings, context: RunContext) -> list[Document]:
    """Return chunks with score 1 and a sub-question, by rank; none if the query is closed or no depth is left."""
    services = context.services
    if context.depth >= services.limits.max_rec_depth or services.stop.closes(findings):
        return []
    if not expansion_rule(services.limits.expansion).asks:
        return []
    return [chunk for chunk in chunks if chunk.metadata["score"] == 1 and chunk.metadata["next_query"]]


async def to_sub_runs(state: RagState, runtime: Runtime[RunContext]) -> list[Send] | str:
    """Route to ``follow_links`` for planned links, else to one ``call_new_rag`` per planned sub-run; to ``augment``
    without any.
    """
    chunks = state["similar_chunks"]
    if has_planned_links(state):
        return "follow_links"
    calls = _expected_calls(sum(not is_linked(chunk) for chunk in chunks), runtime.context)
    share = expected_share(state, runtime.context, calls=calls)
    expected = [each for part in (share.total, share.answer) for each in (part.tokens, part.usd)] if share else []
    sends = [
        Send(
            "call_new_rag",
            CallNewRagState(
                query_for_next_rag=str(chunk.metadata["next_query"]),
                old_query=state["query"],
                similar_chunk=chunk,
                expected_calls=calls,
                expected_share=expected,
            ),
        )
        for chunk in chunks
        if chunk.metadata["next_rag_thread_id"]
    ]
    return sends or "augment"


def _expected_calls(chunks: int, context: RunContext) -> int:
    """Return the model calls that a sub-run below a thread usually takes, if it finds as many chunks as this one."""
    limits, judge = context.services.limits, context.services.judge
    is_judged = limits.judge_leaves or context.depth + 1 < limits.max_rec_depth
    if judge is None or not is_judged:
        return 1
    return 1 + sum(expected_calls(judge, each) for each in (chunks, *most_linked(context)))
