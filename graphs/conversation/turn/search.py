"""The search of a turn: it runs on a thread of its own, and gives the chunks that the answer rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from ....modules.background.closing import closing
from ....modules.calls.growing_text import Delta
from ....modules.judge.insert_block import BELONGS, left_in, quoted_in, report_of
from ....modules.memory.costs import used_models
from ....modules.memory.turns import ChunkRef, best_refs
from ....modules.passage_names import title_of
from ...rag.run_start import RagInput
from ...rag.search_tree import SearchTree
from ...threads.interrupts import INTERRUPTS
from ...threads.state import RagState
from ...tree.nodes import walk_chunks
from .context import TurnContext


async def run_search(given: RagInput, config: RunnableConfig, context: TurnContext) -> RagState:
    """Run a search to its end or to its interrupts, and pass its events on to the turn's listener."""
    stream = context.stream
    if stream is None:
        return await context.rag.ainvoke(given, config, context=context.services)
    stream.restart()
    async with closing(context.rag.astream(given, config, context=context.services, stream_mode="custom")) as events:
        async for event in events:
            if event["event"] == "answer_growing":
                stream.on_text(Delta(event["text"], event["restarted"]))
            elif event["event"] == "thinking_growing":
                stream.on_thinking(Delta(event["text"], event["restarted"]))
            else:
                context.emit(event["node"], event)
    snapshot = await context.rag.aget_state(config)
    return cast(RagState, {**snapshot.values, INTERRUPTS: snapshot.interrupts})


async def found_by(final: RagState, thread_id: str, context: TurnContext) -> dict[str, object]:
    """Return the chunks that the answer of a search rests on, those of sub-runs included, and the search's usage."""
    tree = await SearchTree.afrom_history(context.rag, thread_id)
    context.trees[thread_id] = tree
    candidates = context.services.evidence.of_chunks(final.get("similar_chunks", []))
    found = left_in(candidates)
    taken_out = {each.metadata["chunk_id"] for each in candidates} - {each.metadata["chunk_id"] for each in found}
    # The reader saw no sub-answer of a chunk that was taken out.
    root = replace(tree.root, chunks=tuple(each for each in tree.root.chunks if each.chunk_id not in taken_out))
    refs = {ref["chunk_id"]: ref for ref in (ref_of(chunk.metadata, thread_id) for chunk in found)}
    below = [
        ref_of(chunk.metadata, query.thread_id)
        for query, chunk in walk_chunks(root)
        if query is not root and chunk.score
    ]
    shown = {str(chunk.metadata["chunk_id"]): chunk.metadata.get("shown_place") or math.inf for chunk in found}
    # First what the reader was shown, in its order: an answer cites passages by their numbers there.
    best = sorted(best_refs([*refs.values(), *below]), key=lambda ref: shown.get(ref["chunk_id"], math.inf))
    return {
        "chunks": [_quoting(ref, refs.get(ref["chunk_id"], ref)) for ref in best],
        "insert_block": report_of(final.get("similar_chunks", ())),
        "rag_usage": tree.usage,
        "rag_models": used_models(record for query in tree.query_nodes() for record in query.paid),
    }


def _quoting(ref: ChunkRef, judged: ChunkRef) -> ChunkRef:
    """Return the ref with key passage and reason of another ref of its chunk, which the filter has judged."""
    if "key_passage" not in judged:
        return ref
    return {**ref, "key_passage": judged["key_passage"], "reason": judged["reason"]}


def ref_of(metadata: Mapping[str, Any], thread_id: str) -> ChunkRef:
    """Return a chunk of a thread as turns save it; ``""`` is the thread of what is in no tree."""
    ref = ChunkRef(
        chunk_id=str(metadata["chunk_id"]),
        source=str(metadata.get("source", "")),
        score=metadata.get("score"),
        retrieval_score=metadata.get("retrieval_score"),
        thread_id=thread_id,
    )
    if title := title_of(metadata):
        ref["title"] = title
    if BELONGS in metadata:
        quoted = quoted_in(metadata)
        ref["key_passage"], ref["reason"] = quoted["key_passage"], quoted["reason"]
    return ref
