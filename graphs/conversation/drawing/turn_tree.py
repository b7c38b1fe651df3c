"""A conversation as plain data: its turns, how they hang together, and the search tree of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from ....modules.calls.usage import UsageTotals
from ....modules.memory.turns import MAIN_BRANCH, Branch, ChunkRef, OpenTurn, QaPair, rag_thread_of
from ...rag.search_tree import TREE_DOCUMENTS, SearchTree

_TreeDocument = Annotated[
    SearchTree, PlainValidator(TREE_DOCUMENTS.from_json_object), PlainSerializer(TREE_DOCUMENTS.to_json_object)
]


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One branch with its own turns, those before its fork left out."""

    branch: Branch
    turns: tuple[QaPair, ...]
    """From the fork on."""
    open_turn: OpenTurn | None
    """The turn that comes next on it, begun and not finished."""
    is_active: bool


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """Evidence that one turn's search found and another one answers from."""

    found_in: QaPair
    used_in: QaPair
    chunks: tuple[ChunkRef, ...]


@dataclass(frozen=True, kw_only=True)
class TurnTree:
    """All turns of all branches of a conversation, with their search trees."""

    name: str
    """What its users call it."""
    conversation_id: str
    """Its random id; ``""`` before anything was asked."""
    title: str
    """Its first question; ``""`` before there is an answer."""
    branches: tuple[Branch, ...]
    """The first one first."""
    turns: tuple[QaPair, ...]
    """In the order in which they were answered."""
    trees: Mapping[str, _TreeDocument | None] = field(default_factory=dict)
    """By root thread; None for a tree that is gone. The open turn's stands here once its search has begun."""
    active_branch: str = MAIN_BRANCH
    """Id of the branch that is spoken in."""
    open_turn: OpenTurn | None = None
    """The turn that was begun and not finished."""

    def lanes(self) -> list[Lane]:
        """The branches with their own turns, in the order of ``branches``."""
        return [self._lane(branch) for branch in self.branches]

    def parent_of(self, turn: QaPair | OpenTurn) -> QaPair | None:
        """The turn that it follows; None for a first turn, and where that one is not known."""
        return self._by_id.get(turn["parent_turn_id"])

    def tree_of(self, turn: QaPair) -> SearchTree | None:
        """Its search tree; None where nothing was searched for, or the tree is gone."""
        return self.trees.get(turn["rag_thread_id"])

    @property
    def open_tree(self) -> SearchTree | None:
        """The search tree of the open turn as far as it has come; None without one."""
        if self.open_turn is None:
            return None
        return self.trees.get(rag_thread_of(self.conversation_id, self.open_turn["turn_id"]))

    def reuses(self) -> list[Reuse]:
        """Who answered from whose evidence, in the order of the turns that did.

        A search that is handed chunks of earlier turns finds them again as its own, and so does not count.
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
        """The model calls of all turns summed up, search trees included."""
        spent = [turn["usage"] for turn in self.turns]
        return UsageTotals(
            llm_calls=sum(each["llm_calls"] for each in spent),
            prompt_tokens=sum(each["prompt_tokens"] for each in spent),
            completion_tokens=sum(each["completion_tokens"] for each in spent),
            seconds=sum(each["seconds"] for each in spent),
        )

    @cached_property
    def _by_id(self) -> dict[str, QaPair]:
        return {turn["turn_id"]: turn for turn in self.turns}

    def _lane(self, branch: Branch) -> Lane:
        branch_id, waiting = branch["branch_id"], self.open_turn
        own = sorted(
            (turn for turn in self.turns if turn["branch_id"] == branch_id), key=lambda turn: turn["turn_number"]
        )
        return Lane(
            branch=branch,
            turns=tuple(own),
            open_turn=waiting if waiting and waiting["branch_id"] == branch_id else None,
            is_active=branch_id == self.active_branch,
        )
