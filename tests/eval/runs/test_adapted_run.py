"""Runs at an endpoint that refuses parts of requests: they go on, the manifest says so, and their cache is found."""

from __future__ import annotations

import json

from judgetree.app.scripted.endpoints import Outgoing
from judgetree.modules.llm.wire.adaptations import forget_adaptations
from tests.eval.run_bench import RunBench
from tests.eval.runs.test_batch_run import bench

__all__ = ["bench"]


def test_a_run_says_what_its_model_refused_and_is_repeated_out_of_the_cache(bench: RunBench) -> None:
    posts = bench.server._endpoints._posts
    answer, sent = posts["/v1/chat/completions"], []

    def post(raw: bytes) -> Outgoing:
        body = json.loads(raw)
        sent.append(body)
        if "temperature" in body:
            says = "Unsupported value: 'temperature' does not support 0 with this model."
            return Outgoing(status=400, body=json.dumps({"error": {"message": says, "param": "temperature"}}).encode())
        return answer(raw)

    posts["/v1/chat/completions"] = post
    assert bench.run().failed == 0
    (told,) = json.loads((bench.out / "manifest.json").read_text("utf-8"))["adapted"].items()
    assert (told[0].startswith("scripted at 127.0.0.1:"), told[1]) == (True, ["temperature (left out)"])
    asked = len(sent)
    forget_adaptations()  # as a new process knows nothing
    again = bench.out.with_name("again")
    assert bench.run(out=again).failed == 0
    assert len(sent) == asked, "all calls are found under what was asked for"
    assert bench.run().asked == 0, "a manifest that says so is that of the same run"
