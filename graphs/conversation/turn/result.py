"""What comes back from a turn."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypedDict

from langchain_core.documents import Document

from ....modules.memory.turns import QaPair
from ...threads.state import AnswerStatus


class SourceDocument(TypedDict):
    """A chunk that an answer rests on, as JSON has it."""

    text: str
    metadata: dict[str, object]


@dataclass(frozen=True, kw_only=True)
class TurnResult:
    """The answer to one turn."""

    name: str
    """What the conversation is called."""
    conversation_id: str
    answer: str
    """``""`` if the turn failed."""
    status: AnswerStatus
    turn: QaPair | None
    """The turn as it was saved; None if it failed, and stays open."""
    turn_id: str
    branch: str
    """Name of the branch that it is on."""
    resumed: bool
    """Whether the turn had been begun before; a finished one is given back at no cost."""
    wall_s: float
    """Seconds that this call took."""
    error: str = ""
    """Why the turn failed; ``""`` otherwise."""
    source_documents: tuple[Document, ...] | None = None
    """The chunks of the collection that the answer rests on, best first; None unless ``return_source_documents`` asks
    for them. Of web pages only the addresses are kept, in the turn's ``chunks``."""
    generated_question: str | None = None
    """The question as it stands alone; None unless ``return_generated_question`` asks for it."""

    def __str__(self) -> str:
        return self.answer or f"({self.status}: {self.error})"

    def to_document(self) -> dict[str, object]:
        """Plain data that ``json.dumps`` takes; keys that were not asked for are left out."""
        document: dict[str, object] = {
            "name": self.name,
            "conversation_id": self.conversation_id,
            "turn_id": self.turn_id,
            "branch": self.branch,
            "answer": self.answer,
            "status": self.status,
            "resumed": self.resumed,
            "wall_s": round(self.wall_s, 3),
            "error": self.error,
            "turn": self.turn,
        }
        if self.source_documents is not None:
            document["source_documents"] = [_source_of(chunk) for chunk in self.source_documents]
        if self.generated_question is not None:
            document["generated_question"] = self.generated_question
        return document


def _source_of(chunk: Document) -> SourceDocument:
    # Metadata of a user's own collection may hold anything.
    return SourceDocument(text=chunk.page_content, metadata=json.loads(json.dumps(chunk.metadata, default=str)))
