"""``judgetree explain`` over the scripted model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

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


PARTS = """
from judgetree import Verdict

class Needed:
    def fingerprint(self):
        return {"version": "1"}

    async def judge(self, query, chunk, *, meter, expand=True):
        return Verdict(status="judged", score=2)

class All(Needed):
    def choose(self, candidates, spent, limits):
        return candidates

    def allows_retry(self, tries):
        return False
"""


def test_judge_and_policy_are_not_needed(cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is called: the tree says what they said."""
    thread, (there, elsewhere) = new_thread(), (tmp_path / "there", tmp_path / "elsewhere")
    for folder in (there, elsewhere):
        folder.mkdir()
    (there / "parts_of_one_question.py").write_text(PARTS, encoding="utf-8")
    parts = ("--judge", "parts_of_one_question:Needed", "--policy", "parts_of_one_question:All")
    with monkeypatch.context() as here:
        here.setattr(sys, "path", [*sys.path])
        here.chdir(there)
        cli("ask", CHAIN.question, "-c", COLLECTION, *parts, "--evidence", "sufficient", "--thread-id", thread).ok()
    monkeypatch.chdir(elsewhere)
    del sys.modules["parts_of_one_question"]
    assert "left out, one at a time" in cli("explain", thread, "--yes").ok().out
    cli("fork", thread, "--node", "1", "--set", "topk=1").refused("parts_of_one_question")


def test_a_question_without_evidence_has_nothing_to_leave_out(cli: Cli, home: Path) -> None:
    thread = new_thread()
    cli("ask", CHAIN.question, "--system", "llm", "--thread-id", thread).ok()
    cli("explain", thread, "--yes").refused("saw no chunk")
    cli("explain", "nothing", "--yes").refused("nothing")
