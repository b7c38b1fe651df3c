"""Names of the nodes of a search tree, as commands take them: ``2`` is a query, ``2#1`` its first chunk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...modules.errors import SettingsError
from .nodes import ChunkNode, QueryNode, walk_queries

_NAME = re.compile(r"(?P<number>\d{1,9})(?:#(?P<rank>\d{1,9}))?")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A node of a search tree: a query, or one of its chunks."""

    name: str
    path: tuple[QueryNode, ...]
    """The queries from the root to the one of the node."""
    chunk: ChunkNode | None = None
    """None for the query itself."""

    @property
    def query(self) -> QueryNode:
        """The query, or the one that found the chunk."""
        return self.path[-1]


def query_numbers(root: QueryNode) -> dict[str, int]:
    """Return the numbers of the queries by thread id: from 1, parents before children."""
    return {node.thread_id: number for number, node in enumerate(walk_queries(root), start=1)}


def chunk_name(number: int, chunk: ChunkNode) -> str:
    """Return the name of a chunk of the query of that number."""
    return f"{number}#{chunk.position}"


def find_place(root: QueryNode, name: str) -> Place:
    """Return the node of a name: a query's number, ``NUMBER#RANK`` for a chunk, or the thread id of a query.

    Raises:
        SettingsError: The tree has no such node.
    """
    numbers = query_numbers(root)
    found = _NAME.fullmatch(name)
    if found is None and name not in numbers:
        raise SettingsError(
            f"{name!r} names no node. Allowed: the number of a query, such as 2, or of a chunk of it, such as 2#1; "
            "`judgetree tree THREAD_ID --numbers` shows them."
        )
    number = numbers[name] if found is None else int(found["number"])
    query = next((node for node in walk_queries(root) if numbers[node.thread_id] == number), None)
    if query is None:
        raise SettingsError(f"There is no query {number}. The tree has the queries 1 to {len(numbers)}.")
    path = _path_to(query, root)
    if found is None or found["rank"] is None:
        return Place(name=str(number), path=path)
    chunk = next((each for each in query.chunks if each.position == int(found["rank"])), None)
    if chunk is None:
        there = ", ".join(chunk_name(number, each) for each in query.chunks) or "none"
        raise SettingsError(f"There is no chunk {name}. The chunks of query {number}: {there}.")
    return Place(name=name, path=path, chunk=chunk)


def _path_to(node: QueryNode, root: QueryNode) -> tuple[QueryNode, ...]:
    parents: Mapping[str, QueryNode] = {
        below.thread_id: parent for parent in walk_queries(root) for chunk in parent.chunks for below in chunk.sub_runs
    }
    path = [node]
    while path[-1] is not root:
        path.append(parents[path[-1].thread_id])
    return tuple(reversed(path))
