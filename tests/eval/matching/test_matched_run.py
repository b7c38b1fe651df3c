"""Runs whose opponents have the budget of a system, over the scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.evaluation.matching.matched_run import match_budget, run_matched
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.rows.opponents import MATCHING, opponents_in
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.batch_run import RunOptions
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.rerun import load_rerun
from judgetree.evaluation.runs.runner import paid_in
from judgetree.modules.calls.prices import load_prices
from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import load_settings
from tests.eval.dataset_files import standards_row, write_standards
from tests.eval.run_bench import RunBench

QUOTES = {
    f"{name}.md": f"Ladder {name} of the north hall is painted grey, and its rungs are {name * 3} wide."
    for name in "abcdefgh"
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RunBench]:
    rows = [standards_row(name, f"Which colour has ladder {name[0]}?", "grey", name, QUOTES[name]) for name in QUOTES]
    file = write_standards(tmp_path / "data", QUOTES, *rows)
    with ScriptedServer(load_standards_qa(file)) as server:
        experiment = Experiment(
            dataset=f"standards:{file}", systems=("judge",), topk=2, search_type="sparse", match_budget="judge"
        )
        yield RunBench(
            server=server,
            settings=load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0),
            experiment=experiment,
            out=tmp_path / "run",
        )


def test_opponents_are_found_once_told_and_asked_at_no_further_cost(bench: RunBench) -> None:
    summary = run_matched(bench.experiment, bench.out, settings=bench.settings)
    store = RunStore(bench.out)
    manifest = store.read_manifest() or {}
    naive, ircot = opponents_in(manifest)
    rows = store.read_rows()
    assert {row.system for row in rows} == {"judge", naive.system, ircot.system}
    assert len(rows) == 3 * len(QUOTES)
    tokens = {row.system: 0.0 for row in rows}
    for row in rows:
        tokens[row.system] += sum(usage.prompt_tokens for usage in row.uncached_chat_usage) / len(QUOTES)
    assert tokens[naive.system] == pytest.approx(naive.spent)
    assert tokens["judge"] == pytest.approx(naive.budget)
    assert list(summary.opponents) == [naive.words(), ircot.words()]
    prices = load_prices(bench.settings.home)
    paid = [paid_in(folder, bench.settings, prices).calls for folder in (bench.out / MATCHING, bench.out)]
    assert summary.calls == sum(paid) == bench.requests(), "the pilot's calls are not paid twice"
    assert paid[1] == 0, "the pilot had asked all of these few questions"
    report = load_report(bench.out, settings=bench.settings)
    assert naive.words() in report.to_markdown()
    assert "The pilot that matched budgets was paid apart: unknown." in report.to_markdown()
    assert report.paid_for_pilot is not None
    rerun = load_rerun(bench.out, settings=bench.settings)
    copied = match_budget(rerun.experiment, bench.out.with_name("b"), options=RunOptions(again=rerun))
    assert [each["system"] for each in copied.options.opponents] == [naive.system, ircot.system], "a copy says it too"
    again = run_matched(bench.experiment, bench.out, settings=bench.settings)
    assert (again.asked, again.calls, again.kept) == (0, 0, 3 * len(QUOTES))


@pytest.mark.slow
@pytest.mark.parametrize("system", ["search_r1", "crag"])
def test_other_baselines_are_matched_and_reported_too(bench: RunBench, system: str) -> None:
    experiment = bench.more(systems=(system, "judge"), match_budget=system)
    assert run_matched(experiment, bench.out, settings=bench.settings).failed == 0
    naive, ircot = opponents_in(RunStore(bench.out).read_manifest() or {})
    assert (naive.matches, ircot.matches) == (system, system)
    report = load_report(bench.out, settings=bench.settings)
    assert set(report.questions["system"]) == {system, "judge", naive.system, ircot.system}
    assert ("crag" in report.judges) == (system == "crag")
    assert set(report.questions["em"]) == {1}


@pytest.mark.slow
def test_limits_hold_for_pilot_and_run_together(bench: RunBench) -> None:
    cut = run_matched(bench.more(max_calls=6), bench.out, settings=bench.settings)
    assert cut.stopped_by == "max_calls=6"
    assert not (bench.out / "rows.jsonl").exists(), "the pilot was stopped"
    assert bench.requests() <= 6 + 1
    whole = bench.requests()
    done = run_matched(bench.experiment, bench.out, settings=bench.settings)
    assert (done.stopped_by, done.asked) == ("", 3 * len(QUOTES))
    assert bench.requests() > whole
    more = bench.more(max_calls=bench.requests(), repeats=2)
    assert run_matched(more, bench.out, settings=bench.settings).stopped_by, "what the pilot paid counts"


@pytest.mark.slow
def test_it_is_measured_by_those_that_can(bench: RunBench) -> None:
    with pytest.raises(SettingsError, match="run_matched"):
        bench.run()
    with pytest.raises(SettingsError, match="none of the systems"):
        bench.more(match_budget="naive")
    matched = match_budget(bench.experiment, bench.out, settings=bench.settings)
    assert matched.experiment.match_budget is None
    assert matched.experiment.systems[0] == "judge"
    assert len(matched.experiment.systems) == 3


@pytest.mark.slow
def test_a_pilot_of_other_settings_is_not_taken(bench: RunBench) -> None:
    """Opponents of topk 2 were told to have the budget of a judge with topk 1."""
    match_budget(bench.experiment, bench.out, settings=bench.settings)
    paid = bench.requests()
    again = match_budget(bench.experiment, bench.out, settings=bench.settings)
    assert (again.calls, bench.requests()) == (0, paid), "the same settings take it at no cost"
    with pytest.raises(SettingsError, match="topk"):
        match_budget(bench.more(topk=1), bench.out, settings=bench.settings)
    assert bench.requests() == paid


@pytest.mark.slow
def test_the_pilot_stays_paid_where_a_run_goes_on_without_it(bench: RunBench) -> None:
    match_budget(bench.experiment, bench.out, settings=bench.settings)
    paid = bench.requests()
    summary = bench.run(match_budget=None, systems=("naive", "judge"), max_calls=paid, cache="off")
    assert (summary.calls, summary.stopped_by) == (0, f"max_calls={paid}")
    assert bench.requests() == paid
