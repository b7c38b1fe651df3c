"""What comes back from a question."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypedDict

from ...modules.calls.usage import UsageTotals
from ..threads.state import AnswerStatus
from .search_tree import SearchTree


class ResultDocument(TypedDict):
    """A result as one JSON document."""

    answer: str
    status: AnswerStatus
    thread_id: str
    system: str
    error: str
    usage: UsageTotals
    usage_this_run: UsageTotals
    wall_s: float
    tree: object


@dataclass(frozen=True, kw_only=True)
class RagResult:
    """The answer to one question, and the search that led to it."""

    answer: str
    """``""`` if the run failed."""
    status: AnswerStatus
    thread_id: str
    system: str
    tree: SearchTree
    usage: UsageTotals
    """Of the whole tree, earlier runs of the thread included."""
    usage_this_run: UsageTotals
    """Of the calls that this run paid for: all zero where a finished thread was returned."""
    wall_s: float
    """Seconds that this run took."""
    error: str = ""
    """Why the run failed; ``""`` otherwise."""

    def __str__(self) -> str:
        return self.answer or f"({self.status}: {self.error})"

    def _repr_html_(self) -> str:
        return self.tree._repr_html_()

    def to_document(self) -> ResultDocument:
        """Plain data that ``json.dumps`` takes."""
        return ResultDocument(
            answer=self.answer,
            status=self.status,
            thread_id=self.thread_id,
            system=self.system,
            error=self.error,
            usage=self.usage,
            usage_this_run=self.usage_this_run,
            wall_s=round(self.wall_s, 3),
            tree=json.loads(self.tree.to_json()),
        )
