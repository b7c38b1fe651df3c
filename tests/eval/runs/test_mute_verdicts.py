"""A judge that now and then says nothing of use: no row of it disappears from a comparison."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.evaluation.reports.compare import compare_runs
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.modules.settings import load_settings
from tests.eval.run_bench import RunBench

DATA = Path(__file__).parents[3] / "data"
SHARE = 0.06


def mute(request: ReceivedRequest) -> ChatReply | None:
    """6 % of the verdicts, by their prompts, are no verdicts."""
    if request.prompt.kind != "judge":
        return None
    drawn = hashlib.sha256(repr(request.prompt).encode()).digest()[0] / 256
    return ChatReply(text="Hm.") if drawn < SHARE else None


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RunBench]:
    file = DATA / "standards_qa.jsonl"
    with ScriptedServer(load_standards_qa(file)) as server:
        server.responses = mute
        yield RunBench(
            server=server,
            settings=load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0),
            experiment=Experiment(
                dataset=f"standards:{file}", systems=("naive", "judge"), topk=3, search_type="sparse", concurrency=4
            ),
            out=tmp_path / "run",
        )


@pytest.mark.slow
def test_a_gain_is_that_over_all_rows_whatever_the_judge_left_unsaid(bench: RunBench) -> None:
    summary = bench.run()
    assert (summary.failed, summary.degraded) == (0, 0)
    rows = [json.loads(line) for line in (bench.out / "rows.jsonl").read_text("utf-8").splitlines()]
    assert summary.unusable == sum("unusable_verdicts" in row["damage"] for row in rows) >= 10
    (found, *_) = compare_runs(bench.out)
    right: dict[str, dict[str, float]] = {"judge": {}, "naive": {}}
    gold = {each.id: {each.answer, *each.aliases} for each in load_standards_qa(DATA / "standards_qa.jsonl")}
    for row in rows:
        golds, said = gold[row["question_id"]], row["prediction"].strip(" .") if row["status"] == "answered" else ""
        right[row["system"]][row["question_id"]] = float(said in golds)
    gain = fmean(right["judge"][each] - right["naive"][each] for each in right["judge"])
    assert found.paired.difference.n == len(right["judge"])
    assert found.paired.difference.mean == pytest.approx(gain, abs=0.01)
    assert "replies that could not be used, it is" in found.verdict
    assert found.usable is not None
