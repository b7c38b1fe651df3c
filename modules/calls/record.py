"""One model call as plain data: who made it, what it took, and how it is kept on the disk."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal, Self, TypedDict, cast

from .completion import Completion, TokenLogprob

CallKind = Literal["chat", "embedding", "rerank"]

INTERRUPTED = "the process ended before the reply was kept"
"""Error of a call that was in flight when its process was killed; it may have been billed."""


class CallRecord(TypedDict):
    """One model call as plain data, as it is saved in a thread's checkpoints."""

    call_id: str
    kind: CallKind
    node: str
    """Graph node that made the call."""
    chunk_id: str
    """Chunk the call was about; ``""`` where it was about none."""
    model: str
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    """True where the endpoint reported no tokens, so that the numbers above are estimates from the lengths of texts."""
    seconds: float
    """Wall time from the first attempt to the answer, back-off included; of a cached call, what it took when made."""
    attempts: int
    """1 when the first attempt succeeded."""
    cached: bool
    """True for a call that the cache answered: tokens and seconds are those once paid for it."""
    cut_off: bool
    """True where the endpoint ended the reply before the model did, for its length or by a filter."""
    error: str
    """``""`` for a call that succeeded."""


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
