"""Records of model calls for tests."""

from __future__ import annotations

from judgetree.modules.calls.record import CallRecord


def call_record(call_id: str = "1", **changes: object) -> CallRecord:
    """A chat call of a judge that succeeded at once, with these fields changed."""
    record = CallRecord(
        call_id=call_id,
        kind="chat",
        node="judge",
        chunk_id="",
        model="m",
        prompt_tokens=10,
        completion_tokens=2,
        estimated=False,
        seconds=0.5,
        attempts=1,
        cached=False,
        cut_off=False,
        error="",
    )
    return CallRecord(**{**record, **changes})  # type: ignore[typeddict-item]
