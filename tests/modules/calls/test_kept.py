"""The saved form of a model call."""

from __future__ import annotations

import json

import pytest

from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.kept import CallResult
from judgetree.modules.calls.record import BudgetSource
from judgetree.modules.calls.usage import CallMeter


@pytest.mark.parametrize("taken", [BudgetSource(), BudgetSource(held_by="sub"), BudgetSource(set_aside_for="sub")])
def test_a_call_is_read_as_it_was_written(taken: BudgetSource) -> None:
    meter = CallMeter(node="judge")
    meter.record(kind="chat", model="m", started=0.0)
    completion = Completion(text="yes", thinking="", finish_reason="stop")
    kept = CallResult(completion=completion, record=meter.records[0], taken=taken, run="r")
    assert CallResult.from_json(kept.to_json()) == kept
    assert ("taken" in json.loads(kept.to_json())) == (taken != BudgetSource())
