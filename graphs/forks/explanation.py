"""What each chunk and branch of a search tree did to its answer, for Python, the terminal and pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ...modules.calls.usage import UsageTotals
from ..drawing.drawn import DrawnTree, TreeToDraw
from ..drawing.marks import Mark, Marks
from ..drawing.words import count_of, format_usage
from ..rag.search_tree import SearchTree
from .leaving_out import Effect, Part

_COLOURS: Mapping[Effect, str] = {"decisive": "#00795A", "useless": "#767676", "harmful": "#A3260C"}


@dataclass(frozen=True, kw_only=True)
class AblationEffect:
    """What came of leaving one chunk or branch out."""

    node: str
    """Name of the chunk, such as "2#1"."""
    thread_id: str
    """Thread of the query that found the chunk."""
    chunk_id: str
    part: Part
    """"branch" where only the chunk's sub-question and its answer were left out."""
    answer: str
    """The root's answer without it."""
    effect: Effect


@dataclass(frozen=True, kw_only=True)
class Explanation(DrawnTree):
    """Which chunks and branches a tree's answer rests on; a notebook shows them in the tree.

    ::

        explanation = session.explain(result.thread_id)
        print(explanation)
        [each.node for each in explanation.left_out if each.effect == "decisive"]
    """

    tree: SearchTree
    left_out: tuple[AblationEffect, ...]
    """Level by level, in the order of the evidence."""
    gold: tuple[str, ...] = ()
    """Right answers by which effects were measured; empty for effects by a change of the answer."""
    usage: UsageTotals
    """What the explanation cost."""

    def of_effect(self, effect: Effect) -> tuple[AblationEffect, ...]:
        """Return the chunks and branches of one effect."""
        return tuple(each for each in self.left_out if each.effect == effect)

    @property
    def marks(self) -> Marks:
        """The effects as marks on the tree's chunks; a chunk's own effect stands before that of its branch."""
        chunks: dict[tuple[str, str], Mark] = {}
        for each in self.left_out:
            place = each.thread_id, each.chunk_id
            if each.part == "chunk":
                note = f"without it: {each.answer}"
                chunks[place] = Mark(word=each.effect, note=note, colour=_COLOURS[each.effect])
            else:
                own = chunks[place]
                note = f"{own.note} · its sub-question is {each.effect}, without it: {each.answer}"
                chunks[place] = Mark(word=own.word, note=note, colour=own.colour)
        return Marks(remarks=(self.words, f"asked again: {format_usage(self.usage)}"), chunks=chunks, numbers=True)

    @property
    def words(self) -> str:
        """The counts of effects, in a line."""
        counts = Counter(each.effect for each in self.left_out)
        told = ", ".join(f"{counts[effect]} {effect}" for effect in _COLOURS)
        by = "by right answers" if self.gold else "by changes of the answer"
        parts = count_of(len(self.left_out), "part")
        return f"{parts} left out, one at a time: {told} ({by})"

    def to_document(self) -> dict[str, object]:
        """Return the explanation as plain data for ``json.dumps``."""
        return {
            "thread_id": self.tree.root.thread_id,
            "answer": self.tree.root.answer,
            "gold": list(self.gold),
            "left_out": [asdict(each) for each in self.left_out],
            "usage": self.usage,
        }

    def _to_draw(self) -> TreeToDraw:
        return TreeToDraw(self.tree.root, self.marks, self.tree.fingerprint, self.tree.read_transcripts)

    def __repr__(self) -> str:
        return f"Explanation(thread_id={self.tree.root.thread_id!r}, {self.words})"
