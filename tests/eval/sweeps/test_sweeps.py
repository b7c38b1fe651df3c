"""Sweeps: the grid of a file, one cache and one budget over its runs, and the report with the swept keys as columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from judgetree import evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.sweeps.grid import is_sweep, load_sweep
from judgetree.evaluation.sweeps.run_sweep import run_sweep
from judgetree.evaluation.sweeps.sweep_page import write_sweep_report
from judgetree.evaluation.sweeps.sweep_report import _is_changed
from judgetree.modules.errors import LoadingError, SettingsError
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import CHAIN, CHINESE, write_corpus

QUESTIONS = pd.DataFrame({"question": [CHAIN.question, CHINESE.question], "answer": [CHAIN.answer, CHINESE.answer]})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([CHAIN, CHINESE]) as server:
        yield server


@pytest.fixture
def settings(tmp_path: Path, server: ScriptedServer) -> Settings:
    write_corpus(tmp_path / "docs")
    QUESTIONS.to_csv(tmp_path / "q.csv", index=False)
    return load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0)


def keys(tmp_path: Path, **others: object) -> dict[str, object]:
    base = {"questions": f"{tmp_path}/q.csv", "corpus": f"{tmp_path}/docs", "search_type": "sparse"}
    return {**base, "systems": ["naive", "judge"], "max_rec_depth": [0, 2], "topk": [1, 2], **others}


def test_grid_has_every_combination_and_names_its_folders() -> None:
    grid = load_sweep(dataset="hotpotqa:d.json", topk=[3, 5], retriever=["my.search:a", "my.search:b"])
    names = [point.name for point in grid.points]
    assert len(set(names)) == 4
    assert names[0].startswith("topk=3,retriever=my.search_a-")
    assert [point.experiment.topk for point in grid.points] == [3, 3, 5, 5]
    assert grid.points[0].label == "topk 3, retriever my.search:a"
    assert not is_sweep(None, dataset="hotpotqa:d.json", systems=["naive", "judge"], ids=["a"])


def test_a_search_type_is_not_swept_over_a_retriever_of_one_s_own_and_is_that_of_the_built_in_beside_it() -> None:
    with pytest.raises(SettingsError, match=r"search_type: dense cannot be run.*beside the retriever 'my\.search:a'"):
        load_sweep(dataset="hotpotqa:d.json", retriever="my.search:a", search_type=["hybrid", "dense"])
    grid = load_sweep(dataset="hotpotqa:d.json", retriever=[None, "my.search:a"], search_type="dense")
    assert [point.experiment.search_type for point in grid.points] == ["dense", "hybrid"]


def test_secrets_of_addresses_stay_out_of_names_and_messages(tmp_path: Path) -> None:
    models = ["http://ada:lovelace@host/v1#a", "http://ada:lovelace@host/v1#b"]
    grid = load_sweep(dataset="hotpotqa:d.json", llm=models, retriever=[None, "my.search:a"])
    told = " ".join(f"{point.name} {point.label} {point.values}" for point in grid.points)
    assert "lovelace" not in told
    assert grid.points[0].label.endswith("host/v1#a, retriever default")
    assert grid.points[0].experiment.retriever is None
    with pytest.raises(SettingsError, match="cannot be swept") as refused:
        load_sweep(dataset="hotpotqa:d.json", embeddings=models)
    assert "lovelace" not in str(refused.value)


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ({"seed": [1, 2]}, r"seed: \[1, 2\] cannot be swept\. A list makes a grid for llm, .*topk.*corpus"),
        ({"dataset": ["a:b", "c:d"]}, "dataset: .* cannot be swept"),
        ({"topk": []}, r"topk: \[\] lists no value"),
        ({"topk": [3, 3]}, "lists a value twice"),
        ({"topk": [[3]]}, "something else than single values"),
        ({"topk": [3, 0]}, r"The combination topk: 0 cannot be run\. .*topk"),
        ({"topkk": [1, 2]}, r"The experiment has no key 'topkk'\. Did you mean 'topk'\? Keys: .*dataset, "),
        ({"topkk": 3, "topk": [1, 2]}, "^The experiment has no key 'topkk'"),
        ({}, r"No key lists values\. Give one or more of llm"),
    ],
)
def test_lists_that_make_no_grid_are_refused(listed: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_sweep(**{"dataset": "hotpotqa:d.json", **listed})


@pytest.mark.slow
def test_sweep_is_one_report_and_costs_nothing_again(
    tmp_path: Path, settings: Settings, server: ScriptedServer
) -> None:
    out = tmp_path / "sweep"
    report = evaluation.sweep(out=out, settings=settings, **keys(tmp_path))
    assert report.keys == ("max_rec_depth", "topk")
    em = report.systems.query("metric == 'em' and system == 'judge'").set_index(["max_rec_depth", "topk"])["mean"]
    assert list(em.index) == [(0, 1), (0, 2), (2, 1), (2, 2)]
    assert (em[0, 1], em[2, 1]) == (0.5, 1.0)
    assert {(each.a, each.b) for each in report.comparisons} >= {
        ("judge (max_rec_depth 2, topk 1)", "judge (max_rec_depth 0, topk 1)")
    }
    assert all(each.a != each.b for each in report.comparisons)
    unchanged = [
        each for each in report.comparisons if each.a.startswith("naive") and "max_rec_depth 2, topk 1" in each.a
    ]
    assert unchanged == [], "max_rec_depth changes nothing of naive"
    requests = sum(server.requests.values())
    assert requests < report.questions["llm_calls"].sum(), "equal calls of two combinations are paid once"
    written = write_sweep_report(out)
    text = (out / "report.md").read_text(encoding="utf-8")
    assert text.splitlines()[2].startswith("| max_rec_depth | topk | system | n | EM |")
    assert text.count("| judge |") == 4
    assert [file.name for file in written.files] == [
        *("report.html", "report.md", "systems.csv", "comparisons.csv", "results.csv")
    ]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure") == 2
    assert 'href="max_rec_depth%3D2%2Ctopk%3D1/report.html"' in page
    assert "judge, " not in page or "<script></script>" in page
    assert (out / "max_rec_depth=2,topk=1" / "report.html").exists()
    evaluation.sweep(out=out, settings=settings, **keys(tmp_path))
    wider = evaluation.sweep(out=out, settings=settings, **keys(tmp_path, topk=[2, 3]))
    assert len(wider.systems.query("metric == 'em' and system == 'judge'")) == 6, "what was there stays"
    with pytest.raises(SettingsError, match="holds a sweep of max_rec_depth, topk, not of topk"):
        evaluation.sweep(out=out, settings=settings, **keys(tmp_path, max_rec_depth=2))


@pytest.mark.parametrize("questions", [QUESTIONS, QUESTIONS.to_dict("records")], ids=["frame", "list"])
def test_a_sweep_takes_a_frame_or_a_list_of_questions_as_a_run_does(
    tmp_path: Path, settings: Settings, questions: object
) -> None:
    """It took them for the name of a file: "Cannot read [{'question': …}]"."""
    once = {"questions": questions, "corpus": f"{tmp_path}/docs", "search_type": "sparse", "systems": ["naive"]}
    report = evaluation.sweep(out=tmp_path / "sweep", settings=settings, topk=[1, 2], **once)
    assert len(report.questions) == 4
    [file] = (tmp_path / "sweep").glob("questions-*.jsonl")
    alone = evaluation.run(out=tmp_path / "run", settings=settings, topk=1, **once)
    assert (tmp_path / "run" / file.name).exists()
    assert alone.questions["prediction"].tolist() == report.questions.query("topk == 1")["prediction"].tolist()


@pytest.mark.slow
def test_a_sweep_of_topk_has_each_cut_off_of_every_run_that_retrieves_as_many(
    tmp_path: Path, settings: Settings
) -> None:
    out = tmp_path / "sweep"
    gold = next(path.name for path in (tmp_path / "docs").iterdir())
    QUESTIONS.assign(supporting=gold).to_csv(tmp_path / "gold.csv", index=False)
    several = keys(tmp_path, questions=f"{tmp_path}/gold.csv", systems=["naive"], max_rec_depth=0, topk=[1, 2, 4])
    for report in (evaluation.sweep(out=out, settings=settings, **several), write_sweep_report(out)):
        means = report.systems.set_index(["topk", "metric"])["mean"]
        found = {at: [k for k in (1, 2, 4) if (k, f"recall@{at}") in means.index] for at in (1, 2, 3, 4)}
        assert found == {1: [1, 2, 4], 2: [2, 4], 3: [4], 4: [4]}
        assert [name for name in report.shown if name.startswith("all@")] == ["all@1"]


def test_a_metric_that_some_runs_lack_is_said_so_and_the_rest_is_reported(tmp_path: Path, settings: Settings) -> None:
    out = tmp_path / "sweep"
    gold = next(path.name for path in (tmp_path / "docs").iterdir())
    QUESTIONS.assign(supporting=gold).to_csv(tmp_path / "gold.csv", index=False)
    several = keys(tmp_path, questions=f"{tmp_path}/gold.csv", systems=["naive"], max_rec_depth=0, topk=[2, 4])
    report = evaluation.sweep(out=out, settings=settings, **several, metrics=["em", "recall@3", "mine"])
    assert report.shown == ("em", "recall@3")
    assert report.lacking == {"topk=2": ("recall@3", "mine"), "topk=4": ("mine",)}
    rows = [line for line in report.to_markdown().splitlines() if line.startswith(("| 2 ", "| 4 "))]
    assert [row.split("|")[-2].strip() == "" for row in rows] == [True, False]
    assert "lack metrics of the experiment: recall@3 at topk=2; mine at topk=2 and topk=4.**" in report.to_markdown()
    assert report.to_document()["lacking"] == {"topk=2": ["recall@3", "mine"], "topk=4": ["mine"]}
    alone = evaluation.load_report(out / "topk=2", settings=settings)
    assert (alone.shown, alone.lacking) == (("em",), ("recall@3", "mine"))
    assert "**The run lacks recall@3, mine of the experiment's metrics.**" in alone.to_markdown()


@pytest.mark.slow
def test_budget_is_that_of_the_whole_sweep(tmp_path: Path, settings: Settings) -> None:
    out = tmp_path / "sweep"
    stopped = run_sweep(load_sweep(**keys(tmp_path, max_calls=6, concurrency=1)), out, settings=settings)
    assert stopped.stopped_by == "max_calls=6"
    assert len(stopped.runs) < 4
    report = evaluation.sweep(out=out, settings=settings, **keys(tmp_path, max_calls=500))
    assert report.missing == ()
    assert len(report.questions) == 4 * 2 * 2


@pytest.mark.slow
def test_combinations_of_other_questions_are_set_beside_each_other_over_those_they_share(
    tmp_path: Path, settings: Settings
) -> None:
    one = load_sweep(**keys(tmp_path, max_rec_depth=0, topk=[1], limit=1))
    run_sweep(one, tmp_path / "out", settings=settings)
    assert "cannot be compared" not in write_sweep_report(tmp_path / "out").to_markdown()
    more = load_sweep(**keys(tmp_path, max_rec_depth=0, topk=[2]))
    run_sweep(more, tmp_path / "out", settings=settings)
    report = write_sweep_report(tmp_path / "out")
    counts = "(naive (topk 1) 1, judge (topk 1) 1, naive (topk 2) 2, judge (topk 2) 2; 1 in common)"
    assert counts in report.to_markdown()
    assert "repeated" not in report.to_markdown()
    assert "| naive (topk 2) | " in report.to_markdown()
    assert "Not comparable" in report.tables()[0].caption
    told = [report.to_markdown(), report.tables()[0].caption, json.dumps(report.to_document())]
    assert all("These are the first 1 of 2 questions" in each for each in told)


@pytest.mark.slow
def test_what_a_system_cannot_tell_apart_is_compared_once_and_time_is_not(tmp_path: Path, settings: Settings) -> None:
    """Depth is nothing to naive, and a later combination is quicker since the machine is warm."""
    run_sweep(load_sweep(**keys(tmp_path, max_rec_depth=[0, 1], topk=[1, 2])), tmp_path / "out", settings=settings)
    report = write_sweep_report(tmp_path / "out")
    across = [each for each in report.comparisons if each.a.partition(" ")[0] == each.b.partition(" ")[0]]
    assert {each.paired.metric for each in across} >= {"em", "llm_calls"}
    assert "seconds" not in {each.paired.metric for each in across}
    assert "seconds" in {each.paired.metric for each in report.comparisons}, "systems of one run are"
    pairs = [each.a for each in across if each.paired.metric == "em"]
    assert len([each for each in pairs if each.startswith("naive")]) == 1
    assert len([each for each in pairs if each.startswith("judge")]) == 3


def test_cost_of_a_sweep_is_that_of_its_folder_at_the_prices_of_its_settings(
    tmp_path: Path, settings: Settings
) -> None:
    settings.home.mkdir(exist_ok=True)
    prices = '[chat."scripted"]\nprompt = 1000\ncompletion = 1000\n'
    (settings.home / "prices.toml").write_text(prices, encoding="utf-8")
    first = run_sweep(load_sweep(**keys(tmp_path, max_rec_depth=0, topk=[1])), tmp_path / "out", settings=settings)
    more = load_sweep(**keys(tmp_path, max_rec_depth=0, topk=[2]))
    both = run_sweep(more, tmp_path / "out", settings=settings)
    paid = write_sweep_report(tmp_path / "out", settings=settings).paid.known_usd
    assert first.cost.known_usd < both.cost.known_usd == pytest.approx(paid)
    stopped = run_sweep(
        load_sweep(**keys(tmp_path, max_rec_depth=0, topk=[3], max_cost=both.cost.known_usd)),
        tmp_path / "out",
        settings=settings,
    )
    assert (stopped.runs, stopped.stopped_by[:9]) == ((), "max_cost=")


def test_folders_that_are_no_sweep(tmp_path: Path, settings: Settings) -> None:
    evaluation.run(out=tmp_path / "run", settings=settings, **keys(tmp_path, topk=1, max_rec_depth=0, systems=["llm"]))
    with pytest.raises(SettingsError, match="holds a run, and a sweep needs a folder of its own"):
        evaluation.sweep(out=tmp_path / "run", settings=settings, **keys(tmp_path))
    with pytest.raises(SettingsError, match=r"topk lists values: .*evaluation\.sweep"):
        evaluation.run(out=tmp_path / "other", settings=settings, **keys(tmp_path, max_rec_depth=0))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "sweep.json").write_text("{}", encoding="utf-8")
    with pytest.raises(LoadingError, match=r"has no format; this judgetree reads 'judgetree-sweep/"):
        write_sweep_report(tmp_path / "old")


@pytest.mark.parametrize(
    ("system", "is_changed"),
    [("naive", True), ("naive(topk=9)", False), ("naive(search_type=sparse)", True), ("llm", False), ("judge", True)],
)
def test_a_system_is_compared_with_itself_where_the_swept_key_changes_it(system: str, is_changed: bool) -> None:
    assert _is_changed(system, {"topk": 1, "cache": "off"}, {"topk": 2, "cache": "off"}) is is_changed
