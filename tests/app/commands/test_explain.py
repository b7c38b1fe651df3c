"""``judgetree explain`` over the scripted model."""

from __future__ import annotations

import json
from pathlib import Path

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, COLLECTION, Cli, new_thread


def test_the_cost_is_said_before_and_the_effects_are_drawn(
    cli: Cli, home: Path, scripted: ScriptedServer, tmp_path: Path
) -> None:
    thread = new_thread()
    cli("ask", CHAIN.question, "-c", COLLECTION, "--topk", "1", "--thread-id", thread).ok()
    scripted.reset()
    cli("explain", thread).refused("at most", "Ask again?", "add --yes")
    assert not scripted.requests.total(), "nothing is paid for without a yes"
    page = tmp_path / "tree.html"
    done = cli("explain", thread, "--yes", "--json", "--html", str(page)).ok()
    document = json.loads(done.out)
    assert document["answer"] == "40 mm"
    assert "decisive" in {each["effect"] for each in document["left_out"]}
    assert document["usage"]["llm_calls"] == scripted.requests.total() > 0
    assert "decisive" in page.read_text(encoding="utf-8")
    shown = cli("explain", thread, "-y", "--depth", "0", "--gold", "40 mm").ok().out
    assert "decisive: without it: " in shown
    assert "left out, one at a time" in shown


def test_a_question_without_evidence_has_nothing_to_leave_out(cli: Cli, home: Path) -> None:
    thread = new_thread()
    cli("ask", CHAIN.question, "--system", "llm", "--thread-id", thread).ok()
    cli("explain", thread, "--yes").refused("saw no chunk")
    cli("explain", "nothing", "--yes").refused("nothing")
