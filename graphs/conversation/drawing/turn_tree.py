"""A conversation as plain data: branches, turns and the search tree of each turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from ....modules.calls.usage import UsageTotals, sum_usage
from ....modules.memory.turns import MAIN_BRANCH, Branch, ChunkRef, OpenTurn, QaPair, rag_thread_of
from ...rag.search_tree import TREE_DOCUMENTS, SearchTree

_TreeDocument = Annotated[
    SearchTree, PlainValidator(TREE_DOCUMENTS.from_json_object), PlainSerializer(TREE_DOCUMENTS.to_json_object)
]


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One branch with its own turns, without those before its fork."""

    branch: Branch
    turns: tuple[QaPair, ...]
    """Turns after the fork, oldest first."""
    open_turn: OpenTurn | None
    """The branch's started turn without an answer; None without one."""
    is_active: bool


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """Evidence that the search of one turn found and another turn answers from."""

    found_in: QaPair
    used_in: QaPair
    chunks: tuple[ChunkRef, ...]


@dataclass(frozen=True, kw_only=True)
class TurnTree:
    """All turns of all branches of a conversation, with their search trees."""

    name: str
    """Name of the conversation, unique within its checkpoint store."""
    conversation_id: str
    """Random id of the conversation; ``""`` before the first question."""
    title: str
    """First question; ``""`` before the first answer."""
    branches: tuple[Branch, ...]
    """The main branch first."""
    turns: tuple[QaPair, ...]
    """In the order of their answers."""
    trees: Mapping[str, _TreeDocument | None] = field(default_factory=dict)
    """Search trees by root thread, that of the open turn included; None for a deleted tree."""
    active_branch: str = MAIN_BRANCH
    """Id of the active branch."""
    open_turn: OpenTurn | None = None
    """The started turn without an answer; None without one."""

    def lanes(self) -> list[Lane]:
        """Return the branches with their own turns, in the order of ``branches``."""
        waiting = self.open_turn
        in_order = sorted(self.turns, key=itemgetter("turn_number"))
        return [
            Lane(
                branch=branch,
                turns=tuple(turn for turn in in_order if turn["branch_id"] == branch["branch_id"]),
                open_turn=waiting if waiting and waiting["branch_id"] == branch["branch_id"] else None,
                is_active=branch["branch_id"] == self.active_branch,
            )
            for branch in self.branches
        ]

    def parent_of(self, turn: QaPair | OpenTurn) -> QaPair | None:
        """Return the turn before a turn on its path; None for a first turn, or if the parent is unknown."""
        return self._by_id.get(turn["parent_turn_id"])

    def tree_of(self, turn: QaPair) -> SearchTree | None:
        """Return the search tree of a turn; None if the turn made no search, or its tree was deleted."""
        return self.trees.get(turn["rag_thread_id"])

    @property
    def open_tree(self) -> SearchTree | None:
        """The unfinished search tree of the open turn; None without one."""
        if self.open_turn is None:
            return None
        return self.trees.get(rag_thread_of(self.conversation_id, self.open_turn["turn_id"]))

    def reuses(self) -> list[Reuse]:
        """Return the pairs of turns that share evidence, in the order of the turns that answer from it.

        Chunks of earlier turns that a search was given count as chunks of that search.
        """
        finders = {turn["rag_thread_id"]: turn for turn in self.turns if turn["rag_thread_id"]}
        found: list[Reuse] = []
        for turn in self.turns:
            by_finder: dict[str, list[ChunkRef]] = {}
            for ref in turn["chunks"]:
                if ref["thread_id"] in finders and ref["thread_id"] != turn["rag_thread_id"]:
                    by_finder.setdefault(ref["thread_id"], []).append(ref)
            found += [
                Reuse(found_in=finders[thread], used_in=turn, chunks=tuple(refs)) for thread, refs in by_finder.items()
            ]
        return found

    @property
    def usage(self) -> UsageTotals:
        """Usage of all turns, search trees included."""
        return sum_usage(turn["usage"] for turn in self.turns)

    @cached_property
    def _by_id(self) -> dict[str, QaPair]:
        return {turn["turn_id"]: turn for turn in self.turns}
