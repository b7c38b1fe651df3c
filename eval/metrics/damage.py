"""Damage to an answer: faults, by kind and count, that the question survived, read from the finished search tree.

Damage is what a fault took from an answer. The experiment's limits are not damage: the depth limit, or a budget of
model calls spent without a failed call. Poor but usable replies of a model, such as a sub-question that cannot be
asked, are not damage either, nor are calls that succeeded on a retry. Damage of ``OWN_FAILURES`` is the system's own;
all other comes from outside, and asking again may repair it.

A reply that is worse than it looks has a caveat instead, such as one that a content filter ended. Only a reply that the
endpoint cut off is damage where its end was needed; ``caveats_besides`` leaves it out of the caveats then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

from ...graphs.drawing.words import count_of
from ...graphs.rag.search_tree import SearchTree
from ...graphs.tree.nodes import ChunkNode, QueryNode
from ...modules.calls.record import caveats_of
from ...modules.calls.usage import CallRecord
from ...modules.caveats.kinds import CAVEAT_KINDS, CaveatKind, Caveats

DamageKind = Literal[
    "failed_verdicts",
    "unusable_verdicts",
    "failed_sub_questions",
    "failed_sub_runs",
    "failed_reranks",
    "failed_conversation_calls",
    "cut_off_replies",
    "budget_cuts",
    "damaged_earlier_turns",
]
DAMAGE_KINDS: tuple[DamageKind, ...] = get_args(DamageKind)
DAMAGE_MEANINGS: Mapping[DamageKind, str] = {
    "failed_verdicts": "Chunks without a verdict because a call of the judge failed.",
    "unusable_verdicts": "Chunks without a verdict because no reply of the judge could be parsed; the system's own.",
    "failed_sub_questions": "Chunks with score 1 and no sub-question because the call for it failed.",
    "failed_sub_runs": "Sub-questions that were asked and have no answer.",
    "failed_reranks": "Queries whose chunks keep their coarse order because the rerank model failed.",
    "failed_conversation_calls": "Calls of the conversation itself that failed, such as the rewrite of a question.",
    "cut_off_replies": "Replies that the endpoint cut off, not by a filter: the answer or sub-question is truncated or "
    "missing.",
    "budget_cuts": "Chunks not judged, or sub-questions not asked, because failed calls used up the budget.",
    "damaged_earlier_turns": "Degraded earlier turns of the same path.",
}
"""What each kind counts."""
OWN_FAILURES: frozenset[DamageKind] = frozenset({"unusable_verdicts"})
"""Kinds that are the system's own failure: a model whose replies cannot be used is a part of it."""
REPLY_DAMAGE: frozenset[DamageKind] = frozenset({"unusable_verdicts", "cut_off_replies"})
"""Kinds caused by a model reply that the cache may hold: asking again must bypass the cache."""

Damage = Mapping[DamageKind, int]
"""Count of each kind that happened, 1 or more; empty without damage."""

_IRREGULAR: Mapping[DamageKind, str] = {
    "failed_sub_questions": "failed sub-question",
    "failed_sub_runs": "failed sub-run",
    "cut_off_replies": "cut-off reply",
}


def damage_of(tree: SearchTree) -> dict[DamageKind, int]:
    """Count the damage in a tree, sub-runs included; empty without damage. Makes no calls."""
    nodes = list(tree.query_nodes())
    counts = Counter(kind for node in nodes for kind in _damage_to(node))
    counts["cut_off_replies"] = len({record["call_id"] for node in nodes for record in _cut_replies(node)})
    if not any(record["kind"] == "chat" and record["error"] for node in nodes for record in node.usage):
        del counts["budget_cuts"]
    return in_order(counts)


def damage_to_calls(records: Iterable[CallRecord]) -> dict[DamageKind, int]:
    """Count the steps of a conversation turn whose last call failed or was cut off."""
    last = {record["node"]: record for record in records if record["kind"] == "chat"}.values()
    failed, cut_off = sum(bool(record["error"]) for record in last), sum(map(_is_cut, last))
    return in_order({"failed_conversation_calls": failed, "cut_off_replies": cut_off})


def caveats_besides(caveats: Caveats, damage: Damage) -> dict[CaveatKind, int]:
    """Return the caveats of the replies that damage to the same answer does not count already.

    >>> caveats_besides({"reply_cut": 2, "filtered": 1}, {"cut_off_replies": 2})
    {'filtered': 1}
    """
    left = {**caveats, "reply_cut": caveats.get("reply_cut", 0) - damage.get("cut_off_replies", 0)}
    return {kind: left[kind] for kind in CAVEAT_KINDS if left.get(kind, 0) > 0}


def in_order(counts: Damage) -> dict[DamageKind, int]:
    """Sort counts by ``DAMAGE_KINDS`` and drop zeros."""
    return {kind: count for kind in DAMAGE_KINDS if (count := counts.get(kind, 0))}


def format_damage(damage: Damage) -> str:
    """Describe damage as "2 failed verdicts, 1 failed rerank"; ``""`` without damage."""
    nouns = {kind: _IRREGULAR.get(kind, kind.replace("_", " ").removesuffix("s")) for kind in damage}
    return ", ".join(count_of(count, nouns[kind]) for kind, count in damage.items())


_JUDGING = ("judge", "judge_set")
"""The nodes of judges; a call of ``judge_set`` is about all chunks, unless it names one."""


def _damage_to(node: QueryNode) -> Iterator[DamageKind]:
    yield from filter(None, (_damage_to_chunk(chunk, about) for chunk, about in _judged(node)))
    for record in node.usage:
        if record["kind"] == "rerank" and record["error"]:
            yield "failed_reranks"


def _judged(node: QueryNode) -> Iterator[tuple[ChunkNode, list[CallRecord]]]:
    """Yield the chunks of a query, each with the judge's calls about it."""
    judging = [record for record in node.usage if record["node"] in _JUDGING]
    for chunk in node.chunks:
        yield chunk, [record for record in judging if record["chunk_id"] in ("", chunk.chunk_id)]


def _damage_to_chunk(chunk: ChunkNode, verdict_calls: Sequence[CallRecord]) -> DamageKind | None:
    call_failed = not verdict_calls or bool(verdict_calls[-1]["error"])
    if chunk.verdict_label == "unknown":
        return "failed_verdicts" if call_failed else "unusable_verdicts"
    if chunk.budget_spent:
        return "budget_cuts"
    if chunk.sub_run_error and _is_asked(chunk):
        return "failed_sub_runs"
    return "failed_sub_questions" if chunk.sub_run_error and call_failed else None


def _is_asked(chunk: ChunkNode) -> bool:
    return bool(chunk.next_rag_thread_id or chunk.shared_thread_id)


def _cut_replies(node: QueryNode) -> Iterator[CallRecord]:
    """Yield the calls whose reply was cut off where its end was needed; a call of ``judge_set`` once a chunk.

    A verdict stands at the begin of its reply, so that a cut takes the sub-question alone: it is truncated, or missing.
    """
    yield from (record for record in node.usage if record["node"] not in _JUDGING and _is_cut(record))
    for chunk, about in _judged(node):
        if chunk.score == 1 and _damage_to_chunk(chunk, about) is None:
            of_question = about if chunk.sub_run_error and not _is_asked(chunk) else about[-1:]
            yield from list(filter(_is_cut, of_question))[-1:]


def _is_cut(record: CallRecord) -> bool:
    return "reply_cut" in caveats_of(record)
