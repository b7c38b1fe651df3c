"""A model call that was made, as it is kept on the disk: what was answered, and what that took."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self, cast

from .completion import Completion, TokenLogprob
from .record import CallRecord


@dataclass(frozen=True, kw_only=True)
class KeptCall:
    """A completion and the record of the call that gave it."""

    completion: Completion
    record: CallRecord
    """As it was when the call was made."""

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({"completion": asdict(self.completion), "record": self.record}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What ``to_json`` wrote."""
        kept = json.loads(text)
        first_token = tuple(TokenLogprob(**token) for token in kept["completion"]["first_token"])
        completion = Completion(**{**kept["completion"], "first_token": first_token})
        return cls(completion=completion, record=cast(CallRecord, kept["record"]))

    @staticmethod
    def record_to_json(record: CallRecord) -> str:
        """A record by itself as one line of JSON."""
        return json.dumps(record, separators=(",", ":"))

    @staticmethod
    def record_from_json(text: str) -> CallRecord:
        """What ``record_to_json`` wrote."""
        return cast(CallRecord, json.loads(text))
