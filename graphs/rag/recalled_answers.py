"""Answers of earlier search trees of a conversation, which sub-questions of a new one may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...modules.calls.usage import total_usage
from ...modules.errors import UnknownThread
from ..search.sharing import SharedRuns
from ..threads.context import Compiled
from ..threads.fingerprint import EXTRA_INPUTS
from ..tree.nodes import QueryNode, walk_queries
from .search_tree import SearchTree


async def recall(shared: SharedRuns, threads: Sequence[str], graph: Compiled, fingerprint: Mapping[str, str]) -> None:
    """Tell ``shared`` the questions that earlier trees answered under the same settings, on the same content.

    It reads every checkpoint of these trees. Trees that are deleted, and those of other settings, answer nothing.
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
    """Yield the finished queries of a tree, without a root that its reader answered to more than its query."""
    for node in tree.query_nodes():
        is_asked_otherwise = node is tree.root and any(name in tree.fingerprint for name in EXTRA_INPUTS)
        if node.status == "finished" and not is_asked_otherwise:
            yield node


def _settings(fingerprint: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fingerprint.items() if name not in ("query", *EXTRA_INPUTS)}
