"""Shared descriptions of search trees: verdicts, costs, totals."""

from __future__ import annotations

from collections.abc import Collection

from ...modules.calls.usage import UsageTotals, total_usage
from ...modules.caveats.kinds import CAVEATS, Caveats
from ...modules.errors import LimitName, reason_of
from ...modules.passage_names import full_passage_name
from ..search.candidate import SkipReason
from ..tree.counts import count_saved_by_sharing, count_verdicts, has_no_verdict
from ..tree.nodes import ChunkNode, QueryNode, VerdictLabel, walk_chunks, walk_queries

VERDICT_WORDS: dict[VerdictLabel, str] = {
    "2": "answers the query alone",
    "1": "holds a needed fact",
    "0": "does not help",
    "unknown": "no verdict: the judge failed",
    "cancelled": "not judged: the call was cancelled",
    "pending": "not judged",
}
VERDICT_MARKS: dict[VerdictLabel, str] = {
    "2": "2",
    "1": "1",
    "0": "0",
    "unknown": "?",
    "cancelled": "×",
    "pending": "…",
}


_SKIP_WORDS: dict[SkipReason, str] = {
    "calls": "not asked: too few model calls are left",
    "sub_runs": "not asked: the tree has all its sub-runs",
    "tokens": "not asked: too few tokens are left",
    "cost": "not asked: too little money is left",
    "seconds": "not asked: the time of the search was over",
    "stopped": "not asked: the search was stopped",
    "policy": "not asked: the policy ended the search",
    "cycle": "not asked: an equal question waits for this answer",
    "stop": "not judged: another chunk sufficed",
}


def format_skip(reason: SkipReason) -> str:
    """Say why a supplementary question was not asked."""
    return _SKIP_WORDS[reason]


_LIMIT_WORDS: dict[LimitName, str] = {
    # one that was stopped has words of its own
    "calls": "model calls",
    "sub_runs": "sub-runs",
    "tokens": "tokens",
    "cost": "money",
    "seconds": "time",
}


def format_spent(limits: Collection[LimitName]) -> str:
    """Name the limits that a search tree has reached: "The budget of tokens and time was spent"."""
    if "stopped" in limits:
        return "The search was stopped"
    named = " and ".join(words for name, words in _LIMIT_WORDS.items() if name in limits)
    return f"The budget of {named or 'model calls'} was spent"


def format_grant(chunk: ChunkNode, sub_run: QueryNode) -> str:
    """Say in which round one of a chunk's sub-runs was granted, and which try it is, as far as these tell something.

    A round that is the depth of the sub-run is that of ``breadth``, and is left out.
    """
    place = next(number for number, each in enumerate(chunk.sub_runs) if each is sub_run)
    rounds = [each["round"] for each in chunk.tries] or [granted[0] for granted in (chunk.granted_in,) if granted]
    parts = [f"round {rounds[place]}"] if place < len(rounds) and rounds[place] != sub_run.depth else []
    return " · ".join([*parts, f"try {place + 1}"] if len(chunk.sub_runs) > 1 else parts)


def count_of(number: int, noun: str) -> str:
    """Format a count: "1 call", "1,203 calls"."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


def format_caveat(caveats: Caveats) -> str:
    """Count caveats: "2 cut prompts, 1 filtered reply"; ``""`` without any."""
    return ", ".join(count_of(count, CAVEATS[kind].noun) for kind, count in caveats.items())


def caveat_lines(caveats: Caveats) -> list[str]:
    """Say of each kind of caveat, on a line of its own, how often it happened and what it means."""
    return [f"{count_of(count, CAVEATS[kind].noun)}: {CAVEATS[kind].sentence}" for kind, count in caveats.items()]


def format_usage(totals: UsageTotals) -> str:
    """Format calls, prompt + completion tokens and seconds; "no model calls" without any."""
    if not totals["llm_calls"]:
        return "no model calls"
    tokens = f"{totals['prompt_tokens']:,} + {totals['completion_tokens']:,} tokens"
    return f"{count_of(totals['llm_calls'], 'call')} · {tokens} · {totals['seconds']:.1f} s"


def format_tree(root: QueryNode) -> str:
    """Format size and cost of the whole tree on one line, and what sharing saved."""
    return " · ".join(tree_lines(root))


def tree_lines(root: QueryNode) -> list[str]:
    """Format size and cost of the whole tree, and on a second line what sharing saved, if it did."""
    nodes = list(walk_queries(root))
    chunks = sum(len(node.chunks) for node in nodes)
    totals = total_usage(record for node in nodes for record in node.paid)
    words = [count_of(len(nodes), "query"), count_of(chunks, "chunk"), format_usage(totals)]
    linked = total_usage(record for node in nodes if node.linked_from for record in node.usage)
    if linked["llm_calls"]:
        words.append(f"linked, not paid again: {format_usage(linked)}")
    lines = [" · ".join(words)]
    if any(chunk.shared_thread_id for node in nodes for chunk in node.chunks):
        saved = count_saved_by_sharing(root)
        runs_and_calls = f"{count_of(saved['sub_runs'], 'sub-run')} and {count_of(saved['llm_calls'], 'call')}"
        lines.append(f"{count_of(saved['questions'], 'question')} asked already, saving {runs_and_calls}")
    return lines


def format_cost(node: QueryNode) -> str:
    """Format the cost of one thread; that of a linked thread was paid by another tree."""
    return f"linked · {format_usage(node.cost)}" if node.linked_from else format_usage(node.cost)


def format_verdict_counts(root: QueryNode) -> str:
    """Count the chunks by verdict: "[2] × 1, [0] × 6"."""
    return ", ".join(f"[{label}] × {count}" for label, count in count_verdicts(root).items() if count)


def format_answer(node: QueryNode) -> str:
    """Return the answer, marked if it is a refusal or a failure, or why there is none."""
    if node.status == "failed":
        return f"[thread failed] {node.error}"
    if node.answer_status == "refused":
        return f"[refused] {node.answer}"
    if node.answer_status == "failed":
        return f"[no answer: the reader failed] {node.answer}".rstrip()
    return node.answer or ("[open: no answer yet]" if node.status == "open" else "[no answer]")


def format_origin(chunk: ChunkNode) -> str:
    """Format a chunk's origin: round, rank, retrieval score, title and source, as far as known."""
    parts = [f"round {chunk.round}"] if chunk.found_by else []
    if chunk.position is not None:
        parts.append(f"#{chunk.position}")
    if chunk.retrieval_score is not None:
        parts.append(f"{chunk.retrieval_score:.3f}")
    if chunk.linked_by:
        parts.append(f"linked by “{chunk.linked_by}”")
    return " · ".join(filter(None, [*parts, full_passage_name(chunk.source, chunk.title)]))


def format_failed_verdict(root: QueryNode) -> str:
    """Return how many verdicts of a tree failed, the first reason, and what to do if all did; ``""`` if none failed."""
    failed = [chunk for _, chunk in walk_chunks(root) if chunk.verdict_label == "unknown"]
    if not failed:
        return ""
    why = f". The first: {reason_of(failed[0].reason)}" if failed[0].reason else ""
    if not has_no_verdict(root):
        return f"{count_of(len(failed), 'chunk')} without a verdict, since the judge failed{why}"
    return (
        f"The judge failed on every chunk ({len(failed):,}), so the answer rests on chunks without a verdict{why}. "
        "To do: try the judge's model with `judgetree doctor`, or name another (--judge-llm, --judge), and ask again."
    )
