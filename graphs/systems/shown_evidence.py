"""The evidence that a reader is shown: the chosen chunks, without those that the filter takes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langchain_core.documents import Document
from langgraph.runtime import Runtime

from ...modules.calls.usage import CallMeter
from ...modules.judge.insert_block import left_in, report_of, with_block
from ...modules.reader.evidence import render_evidence, render_sub_answer
from ..threads.context import RunContext, emit
from ..threads.state import ChunkPatch, RagState, Step


async def shown_evidence(
    chunks: Sequence[Document], state: RagState, runtime: Runtime[RunContext], answered: Sequence[Step] = ()
) -> dict[str, object]:
    """Return the update of ``as_evidence``; the root's chunks go through the filter first, if there is one.

    If the filter leaves no chunk in, all are shown. Chunks of a failed call stay.

    Raises:
        ModelSetupError: The endpoint of the filter's model can serve no request.
    """
    context = runtime.context
    filtering = context.services.insert_block
    if filtering is None or context.depth > 0 or not chunks:
        return as_evidence(chunks, answered)
    meter = CallMeter(node="insert_block", budget=context.budget, calls=context.calls)
    blocks = await filtering.blocks(state["query"], chunks, meter=meter)
    judged = [with_block(chunk, block) for chunk, block in zip(chunks, blocks, strict=True)]
    emit(runtime, "insert_block", node="augment", report=report_of(judged))
    shown = as_evidence(left_in(judged), answered)
    patches = [
        ChunkPatch(chunk_id=str(chunk.metadata["chunk_id"]), changes=block.metadata())
        for chunk, block in zip(chunks, blocks, strict=True)
    ]
    places = cast(list[ChunkPatch], shown["similar_chunks"])
    return {**shown, "similar_chunks": [*patches, *places], "usage": meter.records}


def as_evidence(chunks: Sequence[Document], answered: Sequence[Step] = ()) -> dict[str, object]:
    """Return the state update that shows the reader these chunks, then the queries and answers of rounds."""
    pairs = (render_sub_answer(step["query"], step["text"]) for step in answered)
    ids = [str(chunk.metadata["chunk_id"]) for chunk in chunks]
    patches = [ChunkPatch(chunk_id=key, changes={"shown_place": at}) for at, key in enumerate(ids, 1)]
    for step in answered:
        patches += (ChunkPatch(chunk_id=key, changes={"round_answer": step["text"]}) for key in step["chunk_ids"])
    return {"evidence": "\n\n".join(filter(None, (render_evidence(chunks), *pairs))), "similar_chunks": patches}
