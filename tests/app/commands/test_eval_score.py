"""``judgetree eval score``: a metric of one's own over a finished run, and a model's view."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from tests.app.commands.test_eval import data
from tests.app.conftest import Cli

__all__ = ["data"]


@pytest.mark.slow
def test_scores_are_in_the_report(
    cli: Cli, data: Path, tmp_path: Path, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    cli("eval", "run", "--dataset", f"standards:{data}", "--systems", "naive,judge", "--out", str(out)).ok()
    (tmp_path / "my_scores.py").write_text("def short(sample):\n    return 1 / len(sample.answer)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_scores", raising=False)
    before = sum(scripted.requests.values())
    told = cli("eval", "score", str(out), "--metric", "my_scores:short").ok()
    assert told.out.startswith("4 scored, 0 of them in vain, 0 kept from before")
    assert sum(scripted.requests.values()) == before
    scored = json.loads(cli("eval", "score", str(out), "--metric", "llm_correctness", "--json").out)
    assert (scored["scored"], scored["failed"]) == (4, 0)
    report = cli("eval", "report", str(out)).ok().out
    assert "| judge | llm_correctness | 1.000 " in report
    assert "| judge | short |" in report
    assert "score_short" in cli("eval", "compare", str(out)).ok().out
    (tmp_path / "my_scores.py").write_text("def short(sample):\n    return 9\n", encoding="utf-8")
    monkeypatch.delitem(sys.modules, "my_scores", raising=False)
    failed = cli("eval", "score", str(out), "--metric", "my_scores:short")
    assert failed.status == 1
    assert "which is no number from 0 to 1" in failed.out


@pytest.fixture
def scored(cli: Cli, data: Path, tmp_path: Path, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that two metrics have scored."""
    out = tmp_path / "run"
    cli("eval", "run", "--dataset", f"standards:{data}", "--systems", "naive", "--out", str(out)).ok()
    (tmp_path / "removed_scores.py").write_text("def one(sample):\n    return 1\n\n\ndef two(sample):\n    return 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "removed_scores", raising=False)
    for name in ("one", "two"):
        cli("eval", "score", str(out), "--metric", f"removed_scores:{name}").ok()
    return out


def test_scores_of_a_metric_are_taken_out_once_that_is_confirmed(cli: Cli, scored: Path) -> None:
    removing = ("eval", "score", str(scored), "--remove", "removed_scores:one")
    before = (scored / "scores.jsonl").read_bytes()
    assert "2 scores by removed_scores:one" in cli(*removing, "--dry-run").ok().err
    assert "--yes" in cli(*removing).err
    assert (scored / "scores.jsonl").read_bytes() == before
    assert json.loads(cli(*removing, "--yes", "--json").ok().out)["removed"]
    report = cli("eval", "report", str(scored)).ok().out
    assert "| two |" in report
    assert "| one |" not in report


def test_what_cannot_be_taken_out_is_said(cli: Cli, scored: Path) -> None:
    wrong = cli("eval", "score", str(scored), "--remove", "removed_scores:on", "--yes")
    assert "Did you mean 'removed_scores:one'?" in wrong.err
    part = cli("eval", "score", str(scored), "--remove", "removed_scores:one", "--systems", "naive", "--yes")
    assert "leave out --systems" in part.err, "it took out those of all systems"
    both = cli("eval", "score", str(scored), "--remove", "a:b", "--metric", "a:b")
    assert "not both" in both.err
    assert "--metric NAME" in cli("eval", "score", str(scored)).err
