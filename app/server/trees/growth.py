"""A growing tree as documents: the whole at first, then what changed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from ....graphs.rag.watching import TreeState
from ....graphs.tree.changes import PatchOperation, changes_between
from ....graphs.tree.nodes import QueryNode

_MARK = re.compile(r"(\d{1,12})-([0-9a-f]{32})(-end)?")
Document = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class StreamMark:
    """Where in a stream a client is: the number of an event, and the digest of the tree after it."""

    number: int
    digest: str
    is_end: bool = False

    @classmethod
    def of_header(cls, text: str) -> StreamMark | None:
        """Read the id of an event; None for any other text."""
        found = _MARK.fullmatch(text)
        return None if found is None else cls(number=int(found[1]), digest=found[2], is_end=found[3] is not None)

    def __str__(self) -> str:
        return f"{self.number}-{self.digest}{'-end' if self.is_end else ''}"


@dataclass(frozen=True, kw_only=True)
class Growth:
    """One state of a growing tree."""

    mark: StreamMark
    root: QueryNode
    document: Document
    """The tree as ``SearchTree.to_json`` writes it."""
    changes: list[PatchOperation] | None
    """What makes it of the state before; None for the first state."""


async def growths(states: AsyncGenerator[TreeState], known: StreamMark | None = None) -> AsyncGenerator[Growth]:
    """Yield the states of a tree as documents, numbered after the last one that the client knows.

    The first state has no changes if the client has it already, from any process.
    """
    number, last = known.number if known else 0, None
    async with aclosing(states):
        async for state in states:
            document = cast(Document, await asyncio.to_thread(json.loads, state.text))
            changes: list[PatchOperation] | None = None
            if last is not None:
                changes = await asyncio.to_thread(changes_between, last, document)
            elif known is not None and known.digest == state.digest:
                changes = []
            number += 0 if changes == [] else 1
            last = document
            mark = StreamMark(number=number, digest=state.digest)
            yield Growth(mark=mark, root=state.tree.root, document=document, changes=changes)
