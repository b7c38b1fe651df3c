"""The result of a turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from langchain_core.documents import Document

from ....modules.calls.record import CallRecord, count_caveats
from ....modules.calls.usage import UsageTotals
from ....modules.caveats.kinds import CaveatKind
from ....modules.memory.turns import AnsweredFrom, QaPair
from ....modules.storage.texts import html_text
from ...drawing.words import format_usage
from ...rag.search_tree import SearchTree
from ...threads.state import AnswerStatus
from ...tree.counts import has_no_verdict
from ..drawing.words import ANSWERED_WORDS, OPEN_WORDS

TAKEN_KEYS = (
    "name", "conversation_id", "turn_id", "branch", "status", "resumed", "wall_s", "error", "turn", "answered_from",
    "standalone_query", "usage", "caveats", "tree", "source_documents", "generated_question",
)  # fmt: skip
"""Keys of ``to_document`` besides that of the answer."""


_ANSWERING: Mapping[str, str] = {
    "search": "generate",
    "web": "search_web",
    "history": "assess_history",
    "knowledge": "answer_from_knowledge",
    "small_talk": "direct_answer",
}
"""The node whose calls write the answer, by the basis of the answer."""


@dataclass(frozen=True, kw_only=True)
class TurnResult:
    """The answer to one turn, and the search that led to it."""

    name: str
    """Name of the conversation."""
    conversation_id: str
    answer: str
    """``""`` if the turn failed."""
    status: AnswerStatus
    turn: QaPair | None
    """The saved turn; None for a failed turn, which stays open."""
    answered_from: AnsweredFrom | Literal[""]
    """Basis of the answer; ``""`` if the turn failed."""
    standalone_query: str
    """The question that is searched for; the user's words if they were not rewritten."""
    tree: SearchTree | None
    """The turn's search, as far as it came if the turn failed; None without one."""
    usage: UsageTotals
    """Usage of all model calls of the turn, search and earlier runs included; so far, if the turn failed."""
    turn_id: str
    branch: str
    """Name of the branch."""
    resumed: bool
    """True for a turn that an earlier call started; a finished one is returned at no cost."""
    wall_s: float
    """Duration of this call in seconds."""
    error: str = ""
    """Error of a failed turn; ``""`` otherwise."""
    calls: tuple[CallRecord, ...] = ()
    """Model calls of the turn, search and earlier runs included; empty for a turn that an earlier call saved."""
    output_key: str = "answer"
    """Key of the answer in ``to_document``."""
    source_documents: tuple[Document, ...] | None = None
    """Chunks of the collection that the answer rests on, best first; None without ``return_source_documents``.
    Web pages are not included; their addresses are in the turn's ``chunks``."""
    generated_question: str | None = None
    """The stand-alone question; None without ``return_generated_question``."""

    @property
    def caveats(self) -> dict[CaveatKind, int]:
        """What makes replies to its model calls worse than they look, with counts.

        Of a turn that an earlier call saved, those of its search alone.
        """
        searched = [record for node in self.tree.query_nodes() for record in node.usage] if self.tree else []
        records = {record["call_id"]: record for record in (*searched, *self.calls)}
        return count_caveats(records.values())

    @property
    def answer_calls(self) -> tuple[CallRecord, ...]:
        """The model calls that wrote the answer, in their order; empty for one that an earlier call saved, unless it
        was searched for."""
        searched = self.tree.root.usage if self.tree else ()
        records = searched if self.answered_from == "search" else self.calls
        node = _ANSWERING.get(self.answered_from, "")
        return tuple(record for record in records if record["node"] == node and not record["error"])

    @property
    def judging_failed(self) -> bool:
        """True where the judge failed on every chunk of the turn's search."""
        return self.tree is not None and has_no_verdict(self.tree.root)

    def __str__(self) -> str:
        return self.answer or f"({self.status}: {self.error})"

    def _repr_html_(self) -> str:
        basis = ANSWERED_WORDS[self.answered_from] if self.answered_from else OPEN_WORDS
        shown = html_text(self)
        head = f"<p>{shown}<br><small>{basis} · {format_usage(self.usage)}</small></p>"
        return head + (self.tree._repr_html_() if self.tree else "")

    def to_document(self) -> dict[str, object]:
        """Return the result as plain data for ``json.dumps``, without keys that the options did not ask for."""
        document: dict[str, object] = {
            "name": self.name,
            "conversation_id": self.conversation_id,
            "turn_id": self.turn_id,
            "branch": self.branch,
            self.output_key: self.answer,
            "status": self.status,
            "resumed": self.resumed,
            "wall_s": round(self.wall_s, 3),
            "error": self.error,
            "judging_failed": self.judging_failed,
            "turn": self.turn,
            "answered_from": self.answered_from,
            "standalone_query": self.standalone_query,
            "usage": self.usage,
            "caveats": self.caveats,
            "tree": json.loads(self.tree.to_json()) if self.tree else None,
        }
        if self.source_documents is not None:
            # Metadata of a user's own collection may have any type.
            document["source_documents"] = [
                {"text": chunk.page_content, "metadata": json.loads(json.dumps(chunk.metadata, default=str))}
                for chunk in self.source_documents
            ]
        if self.generated_question is not None:
            document["generated_question"] = self.generated_question
        return document
