"""A sweep at the command line: estimated, run, and reported with its swept keys as columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.commands.test_eval import data
from tests.app.conftest import Cli

__all__ = ["data"]


@pytest.mark.slow
def test_lists_in_the_file_make_a_sweep(cli: Cli, data: Path, tmp_path: Path) -> None:
    config, out = tmp_path / "sweep.yaml", tmp_path / "sweep"
    config.write_text("topk: [1, 2]\nmax_rec_depth: [0, 2]\nsearch_type: sparse\n", encoding="utf-8")
    asked = ("--dataset", f"standards:{data}", "--systems", "naive,judge", "--config", str(config), "--out", str(out))
    estimated = cli("eval", "run", *asked, "--dry-run", "--pilot", "1").ok()
    assert "topk 1, max_rec_depth 0: " in estimated.out
    assert "In all " in estimated.out
    ran = cli("eval", "run", *asked).ok()
    assert "topk 2, max_rec_depth 2: 2 asked, 2 kept from before, 0 failed, 0 degraded" in ran.out
    told = cli("eval", "report", str(out), "--latex", f"{tmp_path}/t.tex").ok()
    assert "| topk | max_rec_depth | system | n |" in told.out
    assert r"\label{tab:sweep}" in (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert json.loads(cli("eval", "report", str(out), "--json").out)["keys"] == ["topk", "max_rec_depth"]
    assert "belong to its runs" in cli("eval", "report", str(out), "--csv", str(tmp_path)).err
