"""Metrics of one's own over a finished run: what they get, what is kept and shown, and what a model's view costs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judgetree import evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.reports.compare import compare_runs
from judgetree.evaluation.reports.page import write_report
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.scoring.models import ScoringOptions
from judgetree.evaluation.scoring.own_metric import MetricStore
from judgetree.evaluation.scoring.run_scorer import ScoringSummary
from judgetree.evaluation.scoring.sample import MetricSample
from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import load_settings
from tests.eval.ragas_bench import REFUSED, RagasBench, chunk, row


def always_right(sample: MetricSample) -> float:
    assert sample.status != "failed"
    return 1.0


WALL = (chunk("Norm A names the drum.", score=1, sub=("How thick is the drum?", "40 mm")), chunk("Odd.", score=0))
MODULE = """
def share_of_evidence(sample):
    return sum(word in " ".join(sample.evidence) for word in sample.answer.split()) / len(sample.answer.split())
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RagasBench]:
    """A run of two systems over three questions; naive fails at one of them."""
    with ScriptedServer() as server:
        settings = load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0)
        bench = RagasBench(server=server, settings=settings, folder=tmp_path / "run")
        bench.begin()
        bench.add(row("wall", "It is 40 mm."), *WALL)
        bench.add(row("colour", "Blue"), chunk("Ladders are painted grey."))
        bench.add(row("welder", REFUSED), chunk("Odd."))
        bench.add(row("wall", "30 mm", "naive"), *WALL)
        bench.add(row("colour", "", "naive", status="failed"))
        bench.add(row("welder", "Ada", "naive"), chunk("Odd."))
        yield bench


def scored(bench: RagasBench, metric: object, **options: object) -> ScoringSummary:
    return evaluation.score(
        bench.folder,
        metric,  # type: ignore[arg-type]
        ScoringOptions(**options),  # type: ignore[arg-type]
        settings=bench.settings,
    )


def values(bench: RagasBench) -> dict[tuple[str, str], float | None]:
    return {(score.system, score.question_id): score.value for score in MetricStore(bench.folder).read()}


def test_metric_gets_the_answer_its_evidence_and_its_tree(bench: RagasBench) -> None:
    seen: list[MetricSample] = []

    def told(sample: MetricSample) -> float | None:
        seen.append(sample)
        return None if sample.status == "refused" else len(sample.chunks) / 2

    summary = scored(bench, told, concurrency=1)
    assert (summary.scored, summary.failed, summary.calls, summary.not_applicable) == (6, 0, 0, 0)
    assert bench.requests == sum(bench.server.requests.values()) == 0
    wall = next(sample for sample in seen if (sample.system, sample.question_id) == ("judge", "wall"))
    assert (wall.answer, wall.gold_answers, wall.hops) == ("It is 40 mm.", ("40 mm",), 1)
    assert wall.evidence == (
        "s.md\nNorm A names the drum.\nSupplementary question: How thick is the drum?\nAnswer: 40 mm",
    )
    assert [each.text for each in wall.chunks] == ["Norm A names the drum.", "Odd."]
    assert wall.tree is not None
    assert values(bench)["judge", "welder"] is None
    frame = load_report(bench.folder).questions.set_index(["system", "question_id"])
    [column] = [name for name in frame.columns if name.startswith("score_") and not name.endswith(("_by", "_missing"))]
    assert frame.loc[("naive", "colour"), column] == 0.0, "a failed question has the lowest score"
    assert frame.loc[("judge", "welder"), f"{column}_missing"] == "no score"


@pytest.mark.parametrize(
    ("options", "judge", "naive"),
    [({"systems": ("judge",)}, (1.0, 3), None), ({"limit": 1}, (1.0, 1), (1.0, 1)), ({}, (1.0, 3), (2 / 3, 3))],
)
def test_failed_questions_count_only_where_the_metric_was_used(
    bench: RagasBench, options: dict[str, object], judge: tuple[float, int], naive: tuple[float, int] | None
) -> None:
    scored(bench, always_right, **options)
    means = load_report(bench.folder).systems.query("metric == 'score_always_right'").set_index("system")
    found = {str(system): (row["mean"], row["n"]) for system, row in means.iterrows()}
    assert found == {name: mean for name, mean in (("judge", judge), ("naive", naive)) if mean is not None}


def test_scores_are_kept_by_source_and_shown_everywhere(
    bench: RagasBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_metrics_a.py").write_text(MODULE, encoding="utf-8")
    first = scored(bench, "my_metrics_a:share_of_evidence")
    assert (first.scored, first.kept) == (6, 0)
    assert scored(bench, "my_metrics_a:share_of_evidence").kept == 6
    (scorer,) = {score.scorer for score in MetricStore(bench.folder).read()}
    assert (scorer.metric, len(scorer.source), scorer.model) == ("my_metrics_a:share_of_evidence", 12, "")

    report = write_report(bench.folder)
    assert "## Own metrics" in report.to_markdown()
    assert f"source {scorer.source}" in report.to_markdown()
    assert "score_share_of_evidence" in set(report.systems["metric"])
    assert "share_of_evidence" in (bench.folder / "report.html").read_text(encoding="utf-8")
    compared = [each for each in compare_runs(bench.folder) if each.paired.metric == "score_share_of_evidence"]
    assert len(compared) == 1
    assert "points" not in compared[0].verdict
    (tables,) = evaluation.write_latex(report, tmp_path / "t.tex")
    assert "share of evidence" in tables.read_text(encoding="utf-8")

    del sys.modules["my_metrics_a"]
    (tmp_path / "my_metrics_a.py").write_text(MODULE + "\n# better\n", encoding="utf-8")
    again = scored(bench, "my_metrics_a:share_of_evidence")
    assert (again.scored, again.kept) == (6, 0), "another source is another metric"


def test_range_and_faults_of_a_metric(bench: RagasBench) -> None:
    def stars(sample: MetricSample) -> float:
        if sample.question_id == "welder":
            raise KeyError("welder")
        return 7 if sample.system == "naive" else 4

    stars.range = (0, 5)  # type: ignore[attr-defined]
    stars.version = "2"  # type: ignore[attr-defined]
    summary = scored(bench, stars)
    assert (summary.scored, summary.failed) == (6, 3)
    problems = {(score.system, score.question_id): score.problem for score in MetricStore(bench.folder).read()}
    assert "gave 7, which is no number from 0 to 5" in problems["naive", "wall"]
    assert "KeyError" in problems["judge", "welder"]
    assert scored(bench, stars).scored == 0, "failed ones are kept"
    assert scored(bench, stars, retry_failed=True).scored == 3
    stars.range = (5, 0)  # type: ignore[attr-defined]
    with pytest.raises(SettingsError, match=r"The range of the metric .* is \(5, 0\)"):
        scored(bench, stars)


class Longer:
    def __init__(self, than: int) -> None:
        self.than = than

    def __call__(self, sample: MetricSample) -> bool:
        return len(sample.answer) > self.than


def giving_up(sample: MetricSample) -> float:
    raise asyncio.CancelledError


async def giving_up_later(sample: MetricSample) -> float:
    raise asyncio.CancelledError


def looking_for_more(sample: MetricSample) -> float:
    return next(iter(()))


async def looking_for_more_later(sample: MetricSample) -> float:
    return next(iter(()))


@pytest.mark.parametrize("metric", [giving_up, giving_up_later, looking_for_more, looking_for_more_later])
def test_no_sample_is_lost_where_a_metric_gives_itself_up(
    bench: RagasBench, metric: Callable[[MetricSample], object]
) -> None:
    summary = scored(bench, metric)
    assert (summary.scored, summary.failed) == (6, 5), "a failed answer is not asked of"
    problems = [each.problem for each in MetricStore(bench.folder).read() if each.problem]
    assert len(problems) == 5
    assert all("CancelledError" in each or "StopIteration" in each for each in problems)


def test_objects_that_hold_other_values_are_other_metrics(bench: RagasBench) -> None:
    assert scored(bench, Longer(3)).scored == 6
    assert scored(bench, Longer(3)).kept == 6
    assert scored(bench, Longer(300)).scored == 6


def test_metric_that_is_none_is_refused(bench: RagasBench) -> None:
    with pytest.raises(SettingsError, match=r"Unknown metric 'nonsense'\. Allowed: llm_correctness"):
        scored(bench, "nonsense")
    with pytest.raises(SettingsError, match="leave out --llm"):
        scored(bench, "builtins:len", llm="openai:gpt")
    with pytest.raises(SettingsError, match="Name a function that takes a sample"):
        scored(bench, "math:pi")


def test_model_tells_which_answers_are_correct_at_a_price(bench: RagasBench) -> None:
    bench.settings.home.mkdir(exist_ok=True)
    prices = '[chat."scripted"]\nprompt = 1000\ncompletion = 1000\n'
    (bench.settings.home / "prices.toml").write_text(prices, encoding="utf-8")
    summary = scored(bench, "llm_correctness")
    assert values(bench) == {
        ("judge", "wall"): 1.0,
        ("judge", "colour"): 0.0,
        ("judge", "welder"): 1.0,  # nothing can be known, and it said so, at no call
        ("naive", "wall"): 0.0,
        ("naive", "colour"): 0.0,  # it failed, and costs no call
        ("naive", "welder"): 0.0,
    }
    assert (summary.calls, bench.server.requests["correctness"]) == (3, 3)
    assert summary.cost.usd is not None
    assert summary.cost.usd > 0
    (scorer,) = {score.scorer for score in MetricStore(bench.folder).read()}
    assert scorer.version.startswith("prompt ")
    assert scorer.model == "scripted"
    (bench.folder / "scores.jsonl").unlink()
    again = scored(bench, "llm_correctness", cache="replay")
    assert (again.calls, again.cached_calls) == (0, 3)


def test_limit_stops_cleanly_and_the_rest_is_scored_later(bench: RagasBench) -> None:
    stopped = scored(bench, "llm_correctness", max_calls=1, concurrency=1)
    assert (stopped.calls, stopped.stopped_by) == (1, "max_calls=1")
    assert stopped.failed == 0
    rest = scored(bench, "llm_correctness")
    assert stopped.scored + rest.scored == 6
    assert bench.server.requests["correctness"] == 3
    with pytest.raises(SettingsError, match="max_cost=1 cannot be enforced"):
        scored(bench, "llm_correctness", max_cost=1.0)


def test_lines_are_plain_data(bench: RagasBench) -> None:
    scored(bench, "builtins:callable")
    lines = [json.loads(line) for line in (bench.folder / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {line["scorer"]["metric"] for line in lines} == {"builtins:callable"}
    assert {line["value"] for line in lines} == {0.0}, "False is 0"


class Errors:
    """Counts wrong words; fewer are better."""

    range = (0, 9)
    higher_is_better = False

    def __call__(self, sample: MetricSample) -> float:
        return float(sample.system == "naive")


def test_a_metric_says_which_way_is_better(bench: RagasBench) -> None:
    scored(bench, Errors())
    frame = load_report(bench.folder, settings=bench.settings).questions.set_index(["system", "question_id"])
    assert frame["score_" + next(name for name in frame if name.startswith("score_"))[6:]]["naive", "colour"] == 9.0
    found = next(each for each in compare_runs(bench.folder) if each.paired.metric.startswith("score_"))
    assert (found.paired.better, found.paired.mean_a < found.paired.mean_b) == ("lower", True)

    class Wrong(Errors):
        higher_is_better = "no"

    with pytest.raises(SettingsError, match="higher_is_better of the metric"):
        scored(bench, Wrong())


def mostly_failing(sample: MetricSample) -> float:
    if (sample.question_id, sample.system) != ("wall", "naive"):
        raise ValueError("it needs a wall")
    return 1.0


def test_a_metric_that_failed_on_most_rows_is_told_and_not_compared(bench: RagasBench) -> None:
    scored(bench, mostly_failing)
    assert not any("mostly_failing" in each.paired.metric for each in compare_runs(bench.folder))
    text = load_report(bench.folder, settings=bench.settings).to_markdown()
    assert "mostly_failing failed on most rows, so that systems are not compared by it." in text
