"""``judgetree export``: training data on standard output or in a file, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.conftest import Cli
from tests.eval.training.test_export import Mill


def test_lines_go_to_standard_output_or_a_file(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    writer = Mill(tmp_path / "run")
    writer.fill()
    told = cli("export", str(writer.folder), "--what", "judge").ok()
    assert len([json.loads(line) for line in told.out.splitlines()]) == 4
    assert "4 examples" in told.err
    assert "left out: 1 (no sub-question that led to gold)" in told.err
    out = tmp_path / "judge.jsonl"
    written = cli("export", str(writer.folder), "--what", "judge", "--out", str(out)).ok()
    assert (written.out, out.read_text(encoding="utf-8")) == ("", told.out)
    assert str(out) in written.err.replace("\n", "")


def test_questions_held_back_are_refused(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    writer = Mill(tmp_path / "run", "dev.json")
    writer.fill()
    cli("export", str(writer.folder), "--what", "reader").refused("--any-split")
    assert cli("export", str(writer.folder), "--what", "reader", "--any-split").ok().out
