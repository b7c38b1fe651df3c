"""What went wrong while a question was answered all the same: a kind and a count, read off the finished search tree.

Only what a fault took from an answer counts, and what asking again may mend. The experiment's own limits do not: a
depth that was reached, or a budget of model calls that was spent without a failed call. Neither does what a model makes
of a usable reply, such as a sub-question that cannot be asked. Calls that failed and then succeeded left no damage.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

from ...graphs.drawing.words import count_of
from ...graphs.rag.search_tree import SearchTree
from ...graphs.tree.nodes import ChunkNode, QueryNode
from ...modules.calls.usage import CallRecord

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
"""
- ``failed_verdicts``: a chunk has no verdict, since a call of the judge failed.
- ``unusable_verdicts``: a chunk has no verdict, since no reply of the judge could be used.
- ``failed_sub_questions``: a chunk has a score of 1 without a sub-question, since the call for it failed.
- ``failed_sub_runs``: a sub-question was asked and has no answer.
- ``failed_reranks``: a query's chunks are in their coarse order, since the rerank model failed.
- ``failed_conversation_calls``: a call that leads a conversation failed, such as the one that rewrites a question.
- ``cut_off_replies``: the endpoint ended a reply before the model did; the answer or the sub-question may be half of
  one, or is missing.
- ``budget_cuts``: a chunk was not judged, or its sub-question not asked, since the budget was spent, and failed calls
  had taken a part of it.
- ``damaged_earlier_turns``: an earlier turn of the same path is degraded, and this one was asked after its answer.
"""
DAMAGE_KINDS: tuple[DamageKind, ...] = get_args(DamageKind)
REPLY_DAMAGE: frozenset[DamageKind] = frozenset({"unusable_verdicts", "cut_off_replies"})
"""Kinds that a reply of the model did, which the model cache may hold: asking again must not read it from there."""

Damage = Mapping[DamageKind, int]
"""How often each kind happened, at least once each; empty where nothing went wrong."""

_IRREGULAR: Mapping[DamageKind, str] = {
    "failed_sub_questions": "failed sub-question",
    "failed_sub_runs": "failed sub-run",
    "cut_off_replies": "cut-off reply",
}
_BUDGET = re.compile(r"\bbudget of \d+ model calls\b", re.IGNORECASE)


def damage_of(tree: SearchTree) -> dict[DamageKind, int]:
    """The damage to a tree, sub-runs included; empty for a whole one. Calls no model and reads nothing."""
    nodes = list(tree.query_nodes())
    counts = Counter(kind for node in nodes for kind in _damage_to(node))
    if not any(record["kind"] == "chat" and record["error"] for node in nodes for record in node.usage):
        del counts["budget_cuts"]
    return in_order(counts)


def damage_to_calls(records: Iterable[CallRecord]) -> dict[DamageKind, int]:
    """The damage that calls which lead a conversation have left: steps whose last call failed, or was cut off."""
    last = {record["node"]: record for record in records if record["kind"] == "chat"}.values()
    failed, cut_off = sum(bool(record["error"]) for record in last), sum(record["cut_off"] for record in last)
    return in_order({"failed_conversation_calls": failed, "cut_off_replies": cut_off})


def in_order(counts: Damage) -> dict[DamageKind, int]:
    """The kinds that happened, in the order of ``DAMAGE_KINDS``."""
    return {kind: count for kind in DAMAGE_KINDS if (count := counts.get(kind, 0))}


def damage_in_words(damage: Damage) -> str:
    """ "2 failed verdicts, 1 failed rerank"; ``""`` without damage."""
    return ", ".join(count_of(count, _noun(kind)) for kind, count in damage.items())


def _noun(kind: DamageKind) -> str:
    return _IRREGULAR.get(kind, kind.replace("_", " ").removesuffix("s"))


def _damage_to(node: QueryNode) -> Iterator[DamageKind]:
    about: dict[str, list[CallRecord]] = {}
    for record in node.usage:
        if record["node"] == "judge":
            about.setdefault(record["chunk_id"], []).append(record)
    for chunk in node.chunks:
        yield from _damage_to_chunk(chunk, about.get(chunk.chunk_id, []))
    for record in node.usage:
        if record["kind"] == "rerank" and record["error"]:
            yield "failed_reranks"
        elif record["cut_off"] and record["node"] != "judge":
            yield "cut_off_replies"


def _damage_to_chunk(chunk: ChunkNode, verdict_calls: Sequence[CallRecord]) -> Iterator[DamageKind]:
    call_failed = not verdict_calls or bool(verdict_calls[-1]["error"])
    has_no_question = bool(chunk.sub_run_error) and not chunk.next_rag_thread_id
    if chunk.verdict_label == "unknown":
        yield "failed_verdicts" if call_failed else "unusable_verdicts"
    elif chunk.verdict == "cancelled" or _BUDGET.search(chunk.sub_run_error):
        yield "budget_cuts"
    elif chunk.sub_run_error and chunk.next_rag_thread_id:
        yield "failed_sub_runs"
    elif has_no_question and call_failed:
        yield "failed_sub_questions"
    elif chunk.score == 1 and _is_cut_off(verdict_calls, has_no_question=has_no_question):
        yield "cut_off_replies"


def _is_cut_off(verdict_calls: Sequence[CallRecord], *, has_no_question: bool) -> bool:
    """Whether a sub-question may be half of one, or is missing since its reply was cut off and never mended."""
    cut_off = [record["cut_off"] for record in verdict_calls]
    return any(cut_off) if has_no_question else cut_off[-1:] == [True]
