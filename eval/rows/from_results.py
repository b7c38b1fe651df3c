"""Conversion of results with their search trees to the rows that a run keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from ...graphs.drawing.words import format_failed_verdict
from ...graphs.rag.result import RagResult
from ...graphs.rag.search_tree import SearchTree
from ...graphs.tree.counts import has_no_verdict
from ...graphs.tree.nodes import walk_queries
from ...modules.calls.prices import LOCAL, SIMULATED, ModelUsage, usage_by_model
from ...modules.calls.record import CallRecord
from ...modules.judge.gold import also_of
from ..datasets.questions import EvalQuestion
from ..metrics.context import context_of
from ..metrics.damage import Damage, caveats_besides, damage_of, in_order
from ..metrics.tree import figures_of
from .store import RowChunk, RunRow
from .turn_facts import TurnReply


def row_of(
    question: EvalQuestion,
    result: RagResult | TurnReply | None,
    *,
    place: tuple[str, int, int],
    thread_id: str,
    error: str,
    seconds: float,
    key_field: str,
    local_models: Collection[str] = (),
) -> RunRow:
    """Build the row of one question; ``result`` is None if the question failed without one.

    Args:
        question: The question of the data set.
        result: Its result.
        place: System, repeat and attempt.
        thread_id: The thread that the question ran on.
        error: Why it has no answer; ``""`` if it has one.
        seconds: Wall time.
        key_field: Metadata field of a chunk that names its document.
        local_models: Names of the chat models that run in this process.
    """
    system, repeat, attempt = place
    tree = result.tree if result else None
    reply = result if isinstance(result, TurnReply) else None
    facts = reply.facts if reply else None
    own = [facts.own] if facts and (facts.own.calls or facts.own.cached_calls) else []
    records = [record for node in tree.query_nodes() for record in node.usage] if tree else []
    damage = Counter(damage_of(tree) if tree else {})
    damage.update(reply.damage if reply else {})
    return RunRow(
        system=system,
        question_id=question.id,
        repeat=repeat,
        attempt=attempt,
        question=question.question,
        prediction=result.answer if result else "",
        status=result.status if result and result.status != "interrupted" else "failed",
        error=error or (useless_service(tree, damage) if tree else ""),
        thread_id=thread_id,
        seconds=round(seconds, 3),
        tree=figures_of(tree) if tree else None,
        chunks=tuple(_found(tree, question, key_field)) if tree else (),
        paid=(*paid_for(records, local_models), *_billed(own, local_models)) if tree or facts else None,
        conversation=facts,
        context=context_of(question, tree) if tree else None,
        caveats=caveats_besides(reply.caveats if reply else tree.caveats if tree else {}, damage),
        damage=in_order(damage),
    )


def useless_service(tree: SearchTree, damage: Damage) -> str:
    """Say which service of a question failed at every call, so that its answer is that of another system.

    ``""`` if none did. Replies that cannot be used are of a model that works.
    """
    if has_no_verdict(tree.root) and not damage.get("unusable_verdicts"):
        return format_failed_verdict(tree.root)
    reranks = [record for node in tree.query_nodes() for record in node.usage if record["kind"] == "rerank"]
    if reranks and all(record["error"] for record in reranks):
        return (
            f"The rerank model failed at every search ({len(reranks):,}), so chunks stayed in their coarse order. "
            f"The first: {reranks[0]['error']}"
        )
    return ""


def key_of(metadata: Mapping[str, object], key_field: str, chunk_id: str) -> str:
    """Return the key of a chunk's document, as in ``EvalQuestion.supporting``; the chunk's id if it has none.

    The result of a tool is of no document, whatever the tool is called.
    """
    return chunk_id if metadata.get("tool") else str(metadata.get(key_field) or chunk_id)


def document_keys(
    metadata: Mapping[str, object], question: EvalQuestion, key_field: str, chunk_id: str
) -> tuple[str, tuple[str, ...]]:
    """Return the key of a chunk's document, and those of the other documents that the chunk counts as.

    These hold the same passage, or are gold documents in whose place one of them will do.
    """
    key, also = key_of(metadata, key_field, chunk_id), also_of(metadata, key_field)
    return key, (*also, *question.stood_for((key, *also)))


def paid_for(records: Iterable[CallRecord], local_models: Collection[str]) -> tuple[ModelUsage, ...]:
    """Add up the usage of each model; names of ``local_models``, which run in this process, are marked as local.

    Nothing is paid for calls that a simulated judge has booked.
    """
    return tuple(_billed(usage_by_model(records), local_models))


def _billed(usages: Iterable[ModelUsage], local_models: Collection[str]) -> Iterator[ModelUsage]:
    for usage in usages:
        if usage.model == SIMULATED:
            yield usage.as_unpaid()
        elif usage.kind == "chat" and usage.model in local_models:
            yield replace(usage, model=f"{LOCAL}{usage.model}")
        else:
            yield usage


def _found(tree: SearchTree, question: EvalQuestion, key_field: str) -> Iterator[RowChunk]:
    for node in walk_queries(tree.root):
        for rank, chunk in enumerate(node.chunks):
            key, also = document_keys(chunk.metadata, question, key_field, chunk.chunk_id)
            yield RowChunk(
                key=key,
                chunk_id=chunk.chunk_id,
                depth=node.depth_of(chunk),
                rank=rank,
                verdict=chunk.verdict_label,
                confidence=chunk.score_confidence,
                p_needed=chunk.p_needed,
                p_calibrated=chunk.p_calibrated,
                also=also,
                is_linked=bool(chunk.linked_from),
            )
