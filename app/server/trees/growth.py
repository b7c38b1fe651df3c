"""A growing tree as documents: the whole at first, then what changed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from ....graphs.rag.search_tree import SearchTree
from ....graphs.tree.changes import Change, changes_between
from ....graphs.tree.nodes import QueryNode

_MARK = re.compile(r"(\d{1,12})-([0-9a-f]{32})(-end)?")
Document = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Where in a stream a client is: the number of an event, and the digest of the tree after it."""

    number: int
    digest: str
    is_end: bool = False

    @classmethod
    def of_header(cls, text: str) -> Mark | None:
        """Read the id of an event; None for any other text."""
        found = _MARK.fullmatch(text)
        return None if found is None else cls(number=int(found[1]), digest=found[2], is_end=found[3] is not None)

    def __str__(self) -> str:
        return f"{self.number}-{self.digest}{'-end' if self.is_end else ''}"


@dataclass(frozen=True, kw_only=True)
class Growth:
    """One state of a growing tree."""

    mark: Mark
    root: QueryNode
    document: Document
    """The tree as ``SearchTree.to_json`` writes it."""
    changes: list[Change] | None
    """What makes it of the state before; None for the first state."""


@dataclass(frozen=True, kw_only=True)
class _State:
    root: QueryNode
    document: Document
    digest: str

    @classmethod
    def of(cls, tree: SearchTree) -> _State:
        text = tree.to_json()
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        return cls(root=tree.root, document=cast(Document, json.loads(text)), digest=digest)


async def growths(trees: AsyncGenerator[SearchTree], known: Mark | None = None) -> AsyncGenerator[Growth]:
    """Yield the states of a tree, numbered after the last one that the client knows.

    The digest is the same in every process, so that a client may go on with another one. The first state has no changes
    if the client has it already.
    """
    number, last = known.number if known else 0, None
    async with aclosing(trees):
        async for tree in trees:
            state = await asyncio.to_thread(_State.of, tree)
            is_known = last is None and known is not None and known.digest == state.digest
            changes: list[Change] | None = [] if is_known else None
            if last is not None:
                changes = await asyncio.to_thread(changes_between, last.document, state.document)
                if not changes:
                    continue
            number += 0 if is_known else 1
            last = state
            mark = Mark(number=number, digest=state.digest)
            yield Growth(mark=mark, root=state.root, document=state.document, changes=changes)
