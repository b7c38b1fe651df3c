"""The saved form of a model call."""

from __future__ import annotations

import json

import pytest

from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.kept import KeptCall
from judgetree.modules.calls.record import Taken
from judgetree.modules.calls.usage import CallMeter


@pytest.mark.parametrize("taken", [Taken(), Taken(held_by="sub"), Taken(set_aside_for="sub")])
def test_a_call_is_read_as_it_was_written(taken: Taken) -> None:
    meter = CallMeter(node="judge")
    meter.record(kind="chat", model="m", started=0.0)
    completion = Completion(text="yes", thinking="", finish_reason="stop")
    kept = KeptCall(completion=completion, record=meter.records[0], taken=taken, run="r")
    assert KeptCall.from_json(kept.to_json()) == kept
    assert ("taken" in json.loads(kept.to_json())) == (taken != Taken())
