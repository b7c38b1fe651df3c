"""``judgetree eval`` over dialogues, as a user gets it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation import run
from tests.app.conftest import Cli, write_corpus
from tests.app.talks import DRUM
from tests.browser import CHROMIUM, look_at
from tests.eval.dataset_files import write_lines


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    write_corpus(tmp_path / "data" / "standards")
    return write_lines(tmp_path / "data", asdict(DRUM), name="dialogues.jsonl")


@pytest.mark.slow
def test_run_report_and_comparison(cli: Cli, data: Path, tmp_path: Path, scripted: ScriptedServer) -> None:
    out, config = tmp_path / "run", tmp_path / "experiment.yaml"
    config.write_text("topk: 1\nsearch_type: sparse\nconversation: {direct_answer: true}\n", encoding="utf-8")
    options = ("--dataset", f"dialogues:{data}", "--systems", "naive,judge", "--config", str(config), "--out", str(out))
    ran = cli("eval", "run", *options).ok()
    assert "10 asked, 0 kept from before, 0 failed" in ran.out

    told = cli("eval", "report", str(out)).ok()
    assert "## Conversation" in told.out
    assert "| naive | our stand-alone question | 4 | 100.0 (" in told.out
    assert (out / "report.md").read_text(encoding="utf-8") == told.out
    table = pd.read_parquet(out / "results.parquet")
    of_naive = table[table["system"] == "naive"]
    assert list(of_naive["answered_from"]) == ["search", "search", "history", "search", "search"]
    assert list(of_naive["turn"]) == list(pd.read_csv(out / "results.csv").query("system == 'naive'")["turn"])
    document = json.loads(cli("eval", "report", str(out), "--json").out)
    figures = {(each["system"], each["metric"], each["part"]): each["mean"] for each in document["conversation"]}
    assert figures["judge", "from_history", "all"] == pytest.approx(0.2)
    assert figures["judge", "rewrite_exact", "follow-ups"] == 1.0
    compared = cli("eval", "compare", str(out)).out
    assert compared.startswith("- No difference in EM was shown; judge less naive is +0.0 points")
    assert "| judge | naive | F1 |" in compared

    if CHROMIUM is not None:
        check_page(out / "report.html")

    asked = sum(scripted.requests.values())
    frame = run(config, dataset=f"dialogues:{data}", systems=["naive", "judge"], out=out).questions
    assert sum(scripted.requests.values()) == asked
    assert {"standalone_query", "rewrite_rouge1_recall", "raw_recall@1", "reuses"} <= set(frame.columns)


def check_page(page: Path) -> None:
    look = look_at(page, "#open=en-dialogue-01-turn-3")
    assert look.console == []
    opened = look.elements[look.elements.index('class="body"') :]
    for shown in (DRUM.turns[0].question, DRUM.turns[1].answer, DRUM.turns[2].standalone, "from history"):
        assert shown in opened[: opened.index("search tree")]
    assert '<span class="place">en-dialogue-01 · 3</span>' in look.elements


def test_dry_run_estimates_dialogues(cli: Cli, data: Path, tmp_path: Path) -> None:
    options = ("--dataset", f"dialogues:{data}", "--systems", "llm", "--out", str(tmp_path / "run"))
    told = json.loads(cli("eval", "run", *options, "--dry-run", "--pilot", "1", "--json").out)
    asked = told["pilot"]["asked"]
    assert 1 <= asked <= 5
    assert told["total"]["left"] == 5 - asked


def test_unknown_switch_of_conversations_is_named(cli: Cli, data: Path, tmp_path: Path) -> None:
    config = tmp_path / "experiment.yaml"
    config.write_text("conversation: {web_or_rag: true}\n", encoding="utf-8")
    options = ("--dataset", f"dialogues:{data}", "--config", str(config), "--out", str(tmp_path / "run"))
    cli("eval", "run", *options).refused("conversation.web_or_rag")
