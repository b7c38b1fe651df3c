"""Counts over the nodes of a search tree: what sharing saved, and the verdicts."""

from __future__ import annotations

from typing import TypedDict, cast

from ...modules.calls.usage import total_usage
from .nodes import VERDICT_LABELS, QueryNode, VerdictLabel, walk_chunks, walk_queries, walk_shared


class SavedBySharing(TypedDict):
    """What it would have cost to ask each shared question again as it was asked first."""

    questions: int
    """Chunks that take their answer from the run of an equal question."""
    sub_runs: int
    """Runs of these questions, with the sub-runs below them; runs that these share are not counted."""
    llm_calls: int
    """Chat calls of these runs."""


def count_saved_by_sharing(root: QueryNode) -> SavedBySharing:
    """Count what sharing saved; all counts are zero for a tree that asked no question twice.

    What runs of earlier trees took is in the chunks that are linked to them.
    """
    sub_runs = calls = 0
    costs: dict[str, tuple[int, int]] = {}
    shared = [shared for _, _, shared in walk_shared(root)]
    for each in shared:
        if each.thread_id not in costs:
            below = list(walk_queries(each))
            used = total_usage(record for node in below for record in node.usage)["llm_calls"]
            costs[each.thread_id] = len(below), used
        sub_runs += costs[each.thread_id][0]
        calls += costs[each.thread_id][1]
    elsewhere = [chunk for _, chunk in walk_chunks(root) if chunk.is_shared_from_elsewhere]
    sub_runs += sum(cast(int, chunk.metadata["shared_sub_runs"]) for chunk in elsewhere)
    calls += sum(cast(int, chunk.metadata["shared_llm_calls"]) for chunk in elsewhere)
    return SavedBySharing(questions=len(shared) + len(elsewhere), sub_runs=sub_runs, llm_calls=calls)


def count_verdicts(root: QueryNode) -> dict[VerdictLabel, int]:
    """Count the chunk nodes by verdict; every label is a key, in the order of ``VERDICT_LABELS``."""
    counts = dict.fromkeys(VERDICT_LABELS, 0)
    for _, chunk in walk_chunks(root):
        counts[chunk.verdict_label] += 1
    return counts


def has_no_verdict(root: QueryNode) -> bool:
    """Return whether a judge was asked and failed on every chunk of the tree, so that its answer rests on none."""
    counts = count_verdicts(root)
    return counts["unknown"] > 0 and not counts["0"] + counts["1"] + counts["2"]
