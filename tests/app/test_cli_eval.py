"""``judgetree eval``: a run and its report, as a user gets them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest

from judgetree.app.cli_eval import CacheModeName
from judgetree.app.scripted_server import ScriptedServer
from judgetree.modules.completion_cache import CacheMode
from tests.app.conftest import CHAIN, CHINESE, Cli, write_corpus


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    write_corpus(tmp_path / "data" / "standards")
    file = tmp_path / "data" / "qa.jsonl"
    rows = [
        {
            "id": question.id,
            "lang": question.lang,
            "question": question.question,
            "answer": question.answer,
            "type": question.type,
            "supporting": [{key: value for key, value in vars(fact).items() if value} for fact in question.supporting],
        }
        for question in (CHAIN, CHINESE)
    ]
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return file


def test_cache_modes_are_those_of_the_cache() -> None:
    assert get_args(CacheModeName) == get_args(CacheMode)


def test_run_and_report(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "a"
    config = tmp_path / "experiment.yaml"
    config.write_text("topk: 2\nmax_rec_depth: 2\n", encoding="utf-8")
    options = ("--dataset", f"standards:{data}", "--config", str(config), "--out", str(out))
    ran = cli("eval", "run", *options)
    assert ran.status == 0, ran.err
    assert f"6 asked, 0 kept from before, 0 failed: {out}" in ran.out
    assert f"judgetree eval report {out}" in ran.out

    again = cli("eval", "run", *options, "--json")
    assert json.loads(again.out) == {"out": str(out), "asked": 0, "kept": 6, "failed": 0, "stopped_by": ""}

    told = cli("eval", "report", str(out))
    assert told.status == 0, told.err
    assert "| judge | 2 | 0 | 0 | 100.0 (100.0 to 100.0) |" in told.out
    assert (out / "report.md").read_text(encoding="utf-8") == told.out
    table = pd.read_csv(out / "results.csv")
    assert sorted(table["system"].unique()) == ["judge", "llm", "naive"]
    assert list(pd.read_parquet(out / "results.parquet")["question_id"]) == list(table["question_id"])

    document = json.loads(cli("eval", "report", str(out), "--json").out)
    means = {(record["system"], record["metric"]): record["mean"] for record in document["systems"]}
    assert means["judge", "em"] == 1.0
    assert means["llm", "em"] == 0.0

    compared = cli("eval", "compare", str(out))
    assert compared.status == 0, compared.err
    assert len(compared.out.splitlines()) == 6, "three pairs of systems, by EM and F1"
    assert json.loads(cli("eval", "compare", str(out), "--json").out)[0]["metric"] == "em"


def test_some_failed_questions_end_with_1_and_say_how_to_go_on(
    cli: Cli, data: Path, tmp_path: Path, scripted: ScriptedServer
) -> None:
    scripted.configure(faults={"500": 1.0})
    ran = cli("eval", "run", "--dataset", f"standards:{data}", "--systems", "llm", "--out", str(tmp_path / "run"))
    assert ran.status == 1
    assert "2 failed" in ran.out
    assert "--retry-failed" in ran.out


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--dataset", "squad:x.json"), "hotpotqa, 2wiki, musique"),
        (("--dataset", "hotpotqa:nowhere.json"), "nowhere.json"),
        (("--systems", "naive"), "dataset: Field required"),
        (("--dataset", "hotpotqa:a.json", "--systems", "rag"), "systems.0"),
    ],
)
def test_what_the_user_can_mend_ends_with_2(cli: Cli, tmp_path: Path, options: tuple[str, ...], named: str) -> None:
    ran = cli("eval", "run", "--out", str(tmp_path / "run"), *options)
    assert ran.status == 2
    assert named in ran.err


def test_report_of_nothing_ends_with_2(cli: Cli, tmp_path: Path) -> None:
    ran = cli("eval", "report", str(tmp_path))
    assert (ran.status, ran.out) == (2, "")
    assert "holds no finished question" in ran.err
