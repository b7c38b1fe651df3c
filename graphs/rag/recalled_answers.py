"""Answers of earlier search trees of a conversation, which sub-questions of a new one may take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ...modules.calls.usage import total_usage
from ...modules.errors import UnknownThread
from ..search.sharing import SharedRuns
from ..threads.context import Compiled
from ..threads.fingerprint import EXTRA_INPUTS
from ..tree.nodes import ChunkNode, QueryNode, walk_chunks, walk_queries
from .search_tree import SearchTree


async def recall(shared: SharedRuns, threads: Sequence[str], graph: Compiled, fingerprint: Mapping[str, str]) -> None:
    """Tell ``shared`` the questions that earlier trees answered under the same settings, on the same content.

    It reads every checkpoint of these trees. Trees that are deleted, those of other settings, and what failures and
    limits have cut short answer nothing.
    """
    for thread_id in threads:
        try:
            tree = await SearchTree.afrom_history(graph, thread_id)
        except UnknownThread:
            continue
        if _settings(tree.fingerprint) == _settings(fingerprint):
            for node in _answering(tree):
                below = list(walk_queries(node))
                calls = total_usage(record for each in below for record in each.usage)["llm_calls"]
                await shared.prepare(node.query)
                shared.recalled(node.query, node.thread_id, node.answer, sub_runs=len(below), llm_calls=calls)


def _answering(tree: SearchTree) -> Iterator[QueryNode]:
    """Yield the finished queries of a tree to whose answers nothing is missing that another search might have found.

    A root that its reader answered to more than its query is left out.
    """
    incomplete = _incomplete(tree)
    for node in tree.query_nodes():
        is_asked_otherwise = node is tree.root and any(name in tree.fingerprint for name in EXTRA_INPUTS)
        if node.status == "finished" and node.thread_id not in incomplete and not is_asked_otherwise:
            yield node


def _incomplete(tree: SearchTree) -> set[str]:
    """Return the threads with a chunk that a failure or a limit left unjudged or unasked, and those that rest on them.

    So are threads whose answer was cut off.

    Limits, the policy's choice and circles are matters of the whole tree, which another one does not share.
    """
    resting: defaultdict[str, set[str]] = defaultdict(set)
    for node, chunk in walk_chunks(tree.root):
        for below in (*(each.thread_id for each in chunk.sub_runs), chunk.shared_thread_id):
            resting[below].add(node.thread_id)
    waiting = [node.thread_id for node, chunk in walk_chunks(tree.root) if _is_left_out(chunk)]
    waiting += [node.thread_id for node in tree.query_nodes() if node.answer and not node.handed_on]
    found: set[str] = set()
    while waiting:
        thread_id = waiting.pop()
        if thread_id not in found:
            found.add(thread_id)
            waiting += resting[thread_id]
    return found


def _is_left_out(chunk: ChunkNode) -> bool:
    has_failed = bool(chunk.sub_run_error) or any(each["error"] for each in chunk.tries)
    return has_failed or chunk.budget_spent or chunk.verdict_label == "unknown" or chunk.skipped not in (None, "stop")


def _settings(fingerprint: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fingerprint.items() if name not in ("query", *EXTRA_INPUTS)}
