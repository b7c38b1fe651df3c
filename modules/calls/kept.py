"""The saved form of a model call: its completion and its record, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self, cast

from .completion import Completion
from .record import UNRESERVED, BudgetSource, CallRecord


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """A completion with the record of the call that gave it."""

    completion: Completion
    record: CallRecord
    """The record from when the call was made."""
    taken: BudgetSource = UNRESERVED
    """The reserved call whose place it took."""
    run: str = ""
    """Digest of the question and settings that it was made for; ``""`` where its thread has but one."""

    def to_json(self) -> str:
        """Return one line of JSON."""
        document: dict[str, object] = {"completion": self.completion.to_document(), "record": self.record}
        if self.taken != UNRESERVED:
            document["taken"] = asdict(self.taken)
        if self.run:
            document["run"] = self.run
        return json.dumps(document, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse what ``to_json`` wrote."""
        kept = json.loads(text)
        return cls(
            completion=Completion.of_document(kept["completion"]),
            record=cast(CallRecord, kept["record"]),
            taken=BudgetSource(**kept.get("taken", {})),
            run=kept.get("run", ""),
        )
