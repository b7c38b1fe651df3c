"""The tree of a conversation: its turns as plain data, and the ways to keep it, hand it on and look at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import networkx as nx

from ...modules.errors import UnknownThread
from ...modules.memory.turns import MAIN_BRANCH, QaPair, new_branch, rag_thread_of
from ..rag.search_tree import SearchTree
from ..tree.documents import Documents
from ..tree.history import StateHistory
from .drawing.dot import draw_conversation_dot, draw_conversation_svg
from .drawing.graph import build_turn_graph
from .drawing.html import draw_conversation_html, draw_conversation_notebook
from .drawing.text import draw_conversation_text
from .drawing.turn_tree import TurnTree
from .turn.state import ConversationState

if TYPE_CHECKING:
    import graphviz


class Talk(Protocol):
    """What has a tree: a ``Conversation``."""

    def tree(self) -> ConversationTree:
        """See ``Conversation.tree``."""
        ...

    async def atree(self) -> ConversationTree:
        """See ``Conversation.tree``."""
        ...


@dataclass(frozen=True, kw_only=True)
class ConversationTree(TurnTree):
    """A conversation with everything that was asked, found, answered and spent in it.

    >>> from judgetree.modules.memory.turns import MAIN_BRANCH, imported_turn, new_branch
    >>> turn = imported_turn("Who wrote it?", "Cao Xueqin", parent=None, turn_id="1", timestamp="2026-01-01T00:00:00Z")
    >>> main = new_branch(MAIN_BRANCH, "main")
    >>> tree = ConversationTree(
    ...     name="monday", conversation_id="1.2", title="Who wrote it?", branches=(main,), turns=(turn,)
    ... )
    >>> print(tree)
    monday: Who wrote it?
    main (active)
      1 Q: Who wrote it?
        A: Cao Xueqin  (from general knowledge · no model calls)
    1 turn · 1 branch · no model calls
    answered: from general knowledge × 1
    >>> ConversationTree.from_json(tree.to_json()) == tree
    True
    """

    @classmethod
    def from_conversation(cls, conversation: Talk) -> ConversationTree:
        """The tree of a conversation, also of one with an open turn or without any; no model is called.

        Costs one reading of the history per thread of every search tree.
        """
        return conversation.tree()

    @classmethod
    async def afrom_conversation(cls, conversation: Talk) -> ConversationTree:
        """``from_conversation`` on a running event loop."""
        return await conversation.atree()

    @classmethod
    def from_json(cls, text: str) -> ConversationTree:
        """The tree that ``to_json`` wrote, equal to it in every field.

        Raises:
            LoadingError: The text is no JSON, no conversation tree, damaged, or of another format.
        """
        return _DOCUMENTS.load(text)

    def to_json(self, *, indent: int | None = None) -> str:
        """The tree as a JSON document that says its format; search trees are documents within it.

        Raises:
            ValueError: A score or some metadata is a number that is not finite, which JSON cannot say.
        """
        return _DOCUMENTS.dump(self, indent=indent)

    def to_networkx(self) -> nx.MultiDiGraph:
        """A ``networkx.MultiDiGraph``: turns to those that follow them, to those that reuse their evidence, and to
        their search trees; scalar attributes."""
        return build_turn_graph(self)

    def to_text(self, *, width: int = 100) -> str:
        """The turns for a terminal of ``width`` columns, branch by branch."""
        return draw_conversation_text(self, width=width)

    def to_dot(self) -> str:
        """The turns as Graphviz DOT text, to be drawn or changed by hand; needs no Graphviz."""
        return draw_conversation_dot(self)

    def to_graphviz(self) -> graphviz.Source:
        """The turns as a ``graphviz.Source``: a notebook shows it like ``to_svg``; ``render`` needs ``dot`` itself."""
        from ..drawing.source import dot_source  # noqa: PLC0415 - graphviz takes 50 ms to import

        return dot_source(self.to_dot(), title="conversation")

    def to_svg(self) -> str:
        """The turns as a stand-alone SVG picture. Runs ``dot`` or ``graphviz-pure``; 500 turns take about 1 s.

        Raises:
            DependencyError: Neither is installed.
        """
        return draw_conversation_svg(self)

    def to_html(self, *, picture: bool | None = None) -> str:
        """The turns with their search trees as one self-contained, searchable HTML page.

        ``picture`` puts the SVG on top; None does so for up to 500 turns where it can be drawn.

        Raises:
            DependencyError: ``picture`` is True and no renderer is installed.
        """
        return draw_conversation_html(self, picture=picture)

    def _repr_html_(self) -> str:
        """What a notebook shows: the page of ``to_html`` in a frame, offline."""
        return draw_conversation_notebook(self)

    def __repr__(self) -> str:
        # Notebooks save it beside the page, and the fields' own would be as long as all chunks together.
        return f"ConversationTree(name={self.name!r}, title={self.title!r}, turns={len(self.turns)})"

    def __str__(self) -> str:
        return self.to_text()


_DOCUMENTS = Documents(ConversationTree, "conversation-tree", remedy="build it again from its conversation")


async def read_conversation(
    name: str, state: ConversationState | None, turns: list[QaPair], history: StateHistory
) -> ConversationTree:
    """The tree of a conversation's state and all its turns, whose search trees ``history`` knows.

    Costs one reading of the history per thread of every search tree.
    """
    if state is None:
        return ConversationTree(name=name, conversation_id="", title="", branches=(_MAIN,), turns=())
    trees = {thread: await _tree_of(thread, history) for turn in turns if (thread := turn["rag_thread_id"])}
    if waiting := state["open_turn"]:
        thread = rag_thread_of(state["conversation_id"], waiting["turn_id"])
        if begun := await _tree_of(thread, history):
            trees[thread] = begun
    return ConversationTree(
        name=name,
        conversation_id=state["conversation_id"],
        title=state["title"],
        branches=tuple(state["branches"].values()),
        turns=tuple(turns),
        trees=trees,
        active_branch=state["active_branch"],
        open_turn=waiting,
    )


_MAIN = new_branch(MAIN_BRANCH, MAIN_BRANCH)


async def _tree_of(thread_id: str, history: StateHistory) -> SearchTree | None:
    try:
        return await SearchTree.afrom_history(history, thread_id)
    except UnknownThread:
        return None
