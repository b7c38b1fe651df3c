"""Shared descriptions of conversations: the basis of an answer, the origin of a branch, totals."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from ....modules.memory.turns import AnsweredFrom, ChunkRef, QaPair
from ....modules.passage_names import full_passage_name, passage_name
from ...drawing.words import count_of, format_usage
from ...rag.search_tree import SearchTree
from .turn_tree import Lane, Reuse, TurnTree

ANSWERED_WORDS: dict[AnsweredFrom, str] = {
    "search": "from a search",
    "history": "from earlier turns",
    "web": "from the web",
    "knowledge": "from general knowledge",
    "small_talk": "small talk",
}
OPEN_WORDS = "not answered yet"


def format_basis(turn: QaPair) -> str:
    """Format the basis of the answer and the number of its sources: "from a search · 2 sources"."""
    words = ANSWERED_WORDS[turn["answered_from"]]
    return f"{words} · {count_of(len(turn['chunks']), 'source')}" if turn["chunks"] else words


def format_said(turn: QaPair) -> str:
    """Return the answer, marked if it is a refusal."""
    return f"[refused] {turn['answer']}".rstrip() if turn["status"] == "refused" else turn["answer"]


def format_standalone(turn: QaPair) -> str:
    """Return the stand-alone question; ``""`` if it is the question in the user's words."""
    return turn["standalone_query"] if turn["standalone_query"] != turn["query"] else ""


def format_needed(tree: TurnTree, turn: QaPair) -> str:
    """List the earlier turns that the question needs: "needs turn 1, 3"; ``""`` if none are known."""
    numbers = {known["turn_id"]: str(known["turn_number"]) for known in tree.turns}
    needed = [numbers.get(each, each) for each in turn["needed_chat_history"] or ()]
    return f"needs turn {', '.join(needed)}" if needed else ""


def format_switch(tree: TurnTree, turn: QaPair) -> str:
    """Name both collections if the turn searched another one than the turns before it; ``""`` otherwise."""
    before = tree.parent_of(turn)
    while before is not None and not before["collection"]:
        before = tree.parent_of(before)
    if before is None or not turn["collection"] or before["collection"] == turn["collection"]:
        return ""
    return f"collection switched to {turn['collection']}, from {before['collection']}"


def format_open_search(tree: TurnTree) -> str:
    """Format the size of the open turn's unfinished search tree; ``""`` without one."""
    return _format_size(tree.open_tree) if tree.open_tree else ""


def format_search(tree: TurnTree, turn: QaPair) -> str:
    """Format the size of the turn's search tree; ``""`` if the turn made no search."""
    if not turn["rag_thread_id"]:
        return ""
    found = tree.tree_of(turn)
    return _format_size(found) if found else "search tree: gone"


def _format_size(tree: SearchTree) -> str:
    chunks = sum(1 for _ in tree.chunk_nodes())
    return f"search tree: {count_of(tree.sub_runs + 1, 'query')}, {count_of(chunks, 'chunk')}"


def format_reuse(reuse: Reuse) -> str:
    """Format shared evidence: "turn 3 answers from what turn 1 found: a.md, b.md"."""
    sources = ", ".join(
        dict.fromkeys(passage_name(ref["source"], ref.get("title", ""), ref["chunk_id"]) for ref in reuse.chunks)
    )
    return (
        f"turn {reuse.used_in['turn_number']} answers from what turn {reuse.found_in['turn_number']} found: {sources}"
    )


def format_source(ref: ChunkRef) -> str:
    """Return the title of a chunk with its source, or its id without either."""
    return full_passage_name(ref["source"], ref.get("title", ""), ref["chunk_id"])


def origin_of(tree: TurnTree, lane: Lane) -> str:
    """Format the fork of a branch: "from turn 3 of main"; ``""`` if the branch starts with a first turn."""
    branch = lane.branch
    if not branch["forked_from"]:
        return ""
    names = {other["branch_id"]: other["name"] for other in tree.branches}
    parent = names.get(branch["parent_branch_id"], branch["parent_branch_id"])
    return f"from turn {branch['fork_number']} of {parent}"


def format_conversation(tree: TurnTree) -> str:
    """Format size and cost of the whole conversation on one line."""
    turns, branches = count_of(len(tree.turns), "turn"), len(tree.branches)
    parts = [turns, f"{branches:,} {'branch' if branches == 1 else 'branches'}", format_usage(tree.usage)]
    return " · ".join([*parts, "one turn open"] if tree.open_turn else parts)


def answered_counts(tree: TurnTree) -> dict[AnsweredFrom, int]:
    """Count the answers by their basis, without bases that do not occur."""
    counts = Counter(turn["answered_from"] for turn in tree.turns)
    return {kind: counts[kind] for kind in get_args(AnsweredFrom) if counts[kind]}


def refusals(tree: TurnTree) -> int:
    """Count the refusals."""
    return sum(turn["status"] == "refused" for turn in tree.turns)
