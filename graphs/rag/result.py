"""The result of a question."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from langgraph.types import Interrupt

from ...modules.calls.usage import UsageTotals
from ..threads.state import AnswerStatus
from ..tree.counts import has_no_verdict
from .search_tree import SearchTree

ResultStatus = AnswerStatus | Literal["interrupted"]


@dataclass(frozen=True, kw_only=True)
class RagResult:
    """The answer to one question, and the search that led to it."""

    answer: str
    """``""`` if the run failed or was interrupted."""
    status: ResultStatus
    """"interrupted" for a run that waits for an answer to its ``interrupts``; its thread is open."""
    thread_id: str
    system: str
    tree: SearchTree
    usage: UsageTotals
    """Usage of the whole tree, earlier runs of the thread included."""
    usage_this_run: UsageTotals
    """Usage of this run's own model calls; all zero for a finished thread."""
    wall_s: float
    """Duration of this run in seconds."""
    error: str = ""
    """Error of a failed run, or what an interrupted one waits for; ``""`` otherwise."""
    interrupts: tuple[Interrupt, ...] = ()
    """What the run asks; answered by ``session.ask(Command(resume=…), thread_id=…)``."""

    @property
    def judging_failed(self) -> bool:
        """True where the judge failed on every chunk: the answer then rests on chunks that nothing has judged."""
        return has_no_verdict(self.tree.root)

    @property
    def sources(self) -> tuple[str, ...]:
        """Sources of the chunks that the question's reader saw, each once, in the order of the evidence."""
        shown = (str(chunk.metadata.get("source") or "") for chunk in self.tree.root.shown_chunks)
        return tuple(dict.fromkeys(filter(None, shown)))

    def __str__(self) -> str:
        return self.answer or f"({self.status}: {self.error})"

    def _repr_html_(self) -> str:
        return self.tree._repr_html_()

    def to_document(self) -> dict[str, object]:
        """Return the result as plain data for ``json.dumps``."""
        asked = [{"id": each.id, "value": each.value} for each in self.interrupts]
        return {
            "answer": self.answer,
            "status": self.status,
            "thread_id": self.thread_id,
            "system": self.system,
            "error": self.error,
            "judging_failed": self.judging_failed,
            "interrupts": json.loads(json.dumps(asked, default=str)),
            "usage": self.usage,
            "usage_this_run": self.usage_this_run,
            "caveats": self.tree.caveats,
            "wall_s": round(self.wall_s, 3),
            "tree": json.loads(self.tree.to_json()),
        }
