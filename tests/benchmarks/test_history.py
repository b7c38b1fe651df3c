"""Measured figures: a run comes back as it was kept, and the pages say what the data says."""

from __future__ import annotations

import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks.history import DATA, Run, add_run, command, read_runs, run_of
from benchmarks.history_plot import History, history_svg
from benchmarks.measurement import Row, as_markdown, not_measured
from benchmarks.pages import FIGURES, PAGES, drawn, newest, pages

FAST = Row("calls", "12 ms", "< 20 ms", holds=True, values=(12.3,), unit="ms", interval=(11.0, 13.5), note="3 rounds")


def test_a_run_comes_back_with_its_day_machine_versions_and_command(tmp_path: Path) -> None:
    run = run_of("serving", [FAST], note="a busy machine")
    add_run("serving", run, tmp_path)
    add_run("serving", run, tmp_path)
    assert read_runs("serving", tmp_path) == (run, run)
    assert run.day == datetime.date.today()
    assert "cores" in run.machine
    assert {"python", "judgetree"} <= set(run.versions)


def test_what_could_not_be_measured_does_not_replace_a_figure(tmp_path: Path) -> None:
    missing = not_measured("calls", "no file")
    add_run("serving", run_of("serving", [FAST]), tmp_path)
    add_run("serving", run_of("serving", [missing]), tmp_path)
    assert len(read_runs("serving", tmp_path)) == 1
    assert "not measured: no file" in as_markdown([missing])


def test_a_command_names_its_variables_and_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_BENCH_HOTPOTQA", "/somewhere/hotpotqa 500.json")
    monkeypatch.setenv("JUDGETREE_BENCH_CHUNKS", "5000,16000")
    variables = "JUDGETREE_BENCH_CHUNKS=5000,16000 JUDGETREE_BENCH_HOTPOTQA='hotpotqa 500.json'"
    assert command("indexing") == f"{variables} python -m benchmarks indexing"


def test_the_newest_figure_is_that_of_the_last_run_that_has_it() -> None:
    first, last = (
        Run(day=None, machine="m", versions={"python": "3.11"}, command="", rows=(Row(what, "1 s"),))
        for what in ("a", "b")
    )
    assert newest((first, last), "a").run is first
    with pytest.raises(LookupError, match="no run has a row 'c'; there are"):
        newest((first, last), "c")


def test_a_plot_has_a_point_for_each_run_within_its_strip_and_the_goal() -> None:
    history = History(what="a < b", unit="ms", required="≤ 8 ms", values=(9.4, 3.6, 5.2))
    root = ElementTree.fromstring(history_svg([history]))
    points = root.findall("{*}circle")
    heights = [float(point.attrib["cy"]) for point in points]
    goal = float(root.findall("{*}line")[1].attrib["y1"])
    assert heights[0] < goal < heights[2] < heights[1] < 120
    assert history.limit == 8


@pytest.mark.parametrize(
    ("required", "limit"),
    [("< 1,500 MB, none failed", 1500), ("≥ 92 % at ≤ 3.1 calls", None), ("all", None), ("", None)],
)
def test_a_goal_is_drawn_where_it_is_one_bound(required: str, limit: float | None) -> None:
    assert History(what="", unit="", required=required, values=()).limit == limit


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_says_what_the_data_says(page: Path) -> None:
    text, plots = drawn(page.read_text(encoding="utf-8"))
    assert text == page.read_text(encoding="utf-8"), "python -m benchmarks.pages draws it again"
    assert plots == {file: (PAGES / file).read_text(encoding="utf-8") for file in plots}


def test_every_file_of_figures_is_read_and_shown() -> None:
    shown = {block["name"] for page in pages() for block in FIGURES.finditer(page.read_text(encoding="utf-8"))}
    assert {file.stem for file in DATA.glob("*.json") if not read_runs(file.stem)} == set()
    assert {file.stem for file in DATA.glob("*.json")} - set(BENCHMARKS) <= shown
