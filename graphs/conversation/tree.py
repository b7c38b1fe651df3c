"""The tree of a conversation: read from its state or JSON, exported and drawn."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...modules.errors import LostParts, UnknownThread
from ...modules.memory.turns import MAIN_BRANCH, QaPair, new_branch, rag_thread_of
from ..drawing.drawn import DrawnGraph
from ..rag.search_tree import SearchTree
from ..tree.documents import Documents
from ..tree.history import StateHistory
from .drawing.dot import draw_conversation_dot
from .drawing.graph import build_turn_graph
from .drawing.html import draw_conversation_html
from .drawing.text import draw_conversation_text
from .drawing.turn_tree import TurnTree
from .turn.state import ConversationState

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, kw_only=True)
class ConversationTree(TurnTree, DrawnGraph):
    """A conversation with all its turns, branches and search trees.

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

    drawn_as = "conversation"

    @classmethod
    def from_json(cls, text: str) -> ConversationTree:
        """Read a tree that ``to_json`` wrote; the two are equal in every field.

        Raises:
            LoadingError: The text is no JSON, no conversation tree, damaged, or of another format.
        """
        return _DOCUMENTS.load(text)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the tree as a JSON document that names its format; each search tree is a document inside it.

        Raises:
            ValueError: A score or some metadata is a number that is not finite, which JSON cannot write.
        """
        return _DOCUMENTS.dump(self, indent=indent)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return a graph with edges from turns to the turns that follow, that reuse their evidence, and search trees.

        Attributes are scalars.
        """
        return build_turn_graph(self)

    def to_text(self, *, width: int = 100) -> str:
        """Draw the turns for a terminal of ``width`` columns, branch by branch."""
        return draw_conversation_text(self, width=width)

    def to_dot(self) -> str:
        """Draw the turns as Graphviz DOT text; needs no Graphviz."""
        return draw_conversation_dot(self)

    def to_html(self, *, picture: bool | None = None) -> str:
        """Draw the turns with their search trees as one self-contained, searchable HTML page.

        ``picture`` adds the SVG; None adds it for up to 500 turns if it can be drawn.

        Raises:
            DependencyError: ``picture`` is True and no renderer is installed.
        """
        return draw_conversation_html(self, self.to_svg, picture=picture)

    def __repr__(self) -> str:
        # Notebooks save the repr with the page, and that of the fields would be as long as all chunks together.
        return f"ConversationTree(name={self.name!r}, title={self.title!r}, turns={len(self.turns)})"


_DOCUMENTS = Documents(
    ConversationTree, "conversation-tree", remedy="build it again from its conversation", trees="trees"
)


async def read_conversation(
    name: str, state: ConversationState | None, turns: list[QaPair], history: StateHistory
) -> ConversationTree:
    """Build the tree of a conversation from its state and turns; search trees are read from ``history``.

    It reads the history of each thread of every search tree once.
    """
    if state is None:
        main = new_branch(MAIN_BRANCH, MAIN_BRANCH)
        return ConversationTree(name=name, conversation_id="", title="", branches=(main,), turns=())
    trees = {thread: await read_search_tree(thread, history) for turn in turns if (thread := turn["rag_thread_id"])}
    if waiting := state["open_turn"]:
        thread = rag_thread_of(state["conversation_id"], waiting["turn_id"])
        if unfinished := await read_search_tree(thread, history):
            trees[thread] = unfinished
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


async def read_search_tree(thread_id: str, history: StateHistory) -> SearchTree | None:
    """Read the search tree of a thread; None if it does not exist or, with a warning, if the store has lost parts."""
    try:
        return await SearchTree.afrom_history(history, thread_id)
    except UnknownThread:
        return None
    except LostParts as error:
        logger.warning("a turn is without its search tree: %s", error)
        return None
