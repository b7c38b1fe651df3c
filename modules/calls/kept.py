"""The saved form of a model call: its completion and its record, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self, cast

from .completion import Completion, TokenLogprob
from .record import CallRecord


@dataclass(frozen=True, kw_only=True)
class KeptCall:
    """A completion with the record of the call that gave it."""

    completion: Completion
    record: CallRecord
    """The record from when the call was made."""

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps({"completion": asdict(self.completion), "record": self.record}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse what ``to_json`` wrote."""
        kept = json.loads(text)
        first_token = tuple(TokenLogprob(**token) for token in kept["completion"]["first_token"])
        completion = Completion(**{**kept["completion"], "first_token": first_token})
        return cls(completion=completion, record=cast(CallRecord, kept["record"]))
