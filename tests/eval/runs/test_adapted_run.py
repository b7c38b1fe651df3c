"""Runs at an endpoint that refuses parts of requests: they go on, the manifest says so, and their cache is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgetree.app.scripted.endpoints import Outgoing
from judgetree.evaluation.runs.batch_run import RunOptions
from judgetree.evaluation.runs.workers import Workers
from judgetree.modules.llm.wire.adaptations import forget_adaptations, told_adaptations
from tests.eval.run_bench import RunBench
from tests.eval.runs.test_batch_run import bench

__all__ = ["bench"]


def refusing(bench: RunBench, name: str) -> list[dict[str, Any]]:
    """Let the endpoint refuse a parameter by name; returns the requests that it gets."""
    posts = bench.server._endpoints._posts
    answer, sent = posts["/v1/chat/completions"], []

    def post(raw: bytes) -> Outgoing:
        sent.append(json.loads(raw))
        if name in sent[-1]:
            says = {"error": {"message": f"Unsupported value: '{name}' is not supported.", "param": name}}
            return Outgoing(status=400, body=json.dumps(says).encode())
        return answer(raw)

    posts["/v1/chat/completions"] = post
    return sent


def told(folder: Path) -> list[str]:
    """What the manifest of a run says of its one model."""
    adapted = json.loads((folder / "manifest.json").read_text("utf-8"))["adapted"]
    ((name, words),) = adapted.items()
    assert name.startswith("scripted at 127.0.0.1:")
    return list(words)


def test_a_run_says_what_its_model_refused_and_is_repeated_out_of_the_cache(bench: RunBench) -> None:
    sent = refusing(bench, "temperature")
    assert bench.run().failed == 0
    assert told(bench.out) == ["temperature (left out)"]
    asked = len(sent)
    forget_adaptations()  # as a new process knows nothing
    again = bench.out.with_name("again")
    assert bench.run(out=again).failed == 0
    assert len(sent) == asked, "all calls are found under what was asked for"
    assert bench.run().asked == 0, "a manifest that says so is that of the same run"


def test_a_start_that_meets_other_refusals_leaves_what_the_earlier_ones_met(bench: RunBench) -> None:
    """The last start's refusals took the place of the earlier ones'."""
    usual = bench.server._endpoints._posts["/v1/chat/completions"]
    refusing(bench, "temperature")
    bench.run(cache="off", limit=1)
    forget_adaptations()
    bench.server._endpoints._posts["/v1/chat/completions"] = usual
    refusing(bench, "max_tokens")
    bench.run(cache="off")
    assert told(bench.out) == ["temperature (left out)", "max_tokens (sent as max_completion_tokens)"]


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_workers_were_refused_stands_in_the_manifest(bench: RunBench) -> None:
    """Each process has a memory of its own, and the driver's was read alone."""
    pytest.importorskip("ray")
    refusing(bench, "temperature")
    assert bench.run(RunOptions(workers=Workers(count=2))).failed == 0
    assert told_adaptations() == {}, "this process has asked nothing"
    assert told(bench.out) == ["temperature (left out)"]
