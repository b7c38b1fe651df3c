"""Plots as SVG elements of a page: what they say in words and in text, and that a strict page can hold them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from judgetree.evaluation.calibration.judge_figures import Confusion
from judgetree.evaluation.reports.plots import (
    Plot,
    box_of,
    confusion_plot,
    cost_plot,
    failure_plot,
    latency_plot,
    split_plot,
)

SYSTEMS = ("naive", "judge")
QUESTIONS = pd.DataFrame(
    {"system": ["naive", "naive", "judge", "judge"], "seconds": [1.0, 3.0, 4.0, 8.0], "llm_calls": [1, 1, 7, None]}
)
MEANS = pd.DataFrame(
    {
        "system": ["naive", "judge"],
        "metric": ["em", "em"],
        "mean": [0.5, 0.75],
        "low": [0.25, None],
        "high": [0.75, None],
        "n": [2, 1],
    }
)
SPLITS = pd.DataFrame(
    {
        "split": ["type", "type", "hops"],
        "part": ["单跳问题", "<b>&", "2"],
        "system": ["naive", "judge", "judge"],
        "metric": ["em"] * 3,
        "mean": [0.5, 0.75, 1.0],
        "low": [0.25, 0.5, None],
        "high": [0.75, 1.0, None],
        "n": [4, 4, 1],
    }
)
FAILURES = pd.DataFrame(
    {
        "system": ["naive", "judge", "judge"],
        "kind": ["retrieval_miss", "retrieval_miss", "judge_false_0"],
        "answers": [7, 2, 3],
        "share": [0.7, 0.2, 0.3],
    }
)
CONFUSIONS: dict[str, Confusion] = {
    "judge": {
        "0": {"none": 1, "some": 1, "all": 0},
        "1": {"none": 0, "some": 1, "all": 0},
        "2": {"none": 0, "some": 0, "all": 0},
        "unknown": {"none": 0, "some": 0, "all": 0},
    }
}


def drawn(plot: Plot | None) -> Plot:
    assert plot is not None
    return plot


def plots() -> list[Plot]:
    each = [
        cost_plot(QUESTIONS, MEANS),
        split_plot(SPLITS, SYSTEMS),
        confusion_plot(CONFUSIONS),
        latency_plot(QUESTIONS),
        failure_plot(FAILURES, SYSTEMS),
    ]
    return [plot for plot in each if plot is not None]


def texts(plot: Plot) -> list[str]:
    root = ElementTree.fromstring(plot.svg)
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


def alt(plot: Plot) -> str:
    return ElementTree.fromstring(plot.svg)[0].text or ""


def test_means_over_other_questions_are_called_so() -> None:
    said = "Not comparable: each system over questions of its own (naive 2, judge 1)."
    assert said in drawn(cost_plot(QUESTIONS, MEANS)).caption
    assert "Not comparable" not in drawn(cost_plot(QUESTIONS, MEANS.assign(n=2))).caption


def test_names_with_what_xml_forbids_are_drawn() -> None:
    """A control character in a type of question failed the whole report."""
    odd = SPLITS.replace("bridge", "bridge\x1b[31m")
    assert drawn(split_plot(odd, SYSTEMS)).svg.count("\x1b") == 0


def test_a_legend_of_long_names_fits_its_plot() -> None:
    """The first and the last name were cut off at the edges."""
    names = ("naive", "naive(topk=10)", "judge(judge=batched)", "judge(judge=my_module:KeywordJudge)")
    rows = [
        {
            "split": "type",
            "part": "bridge",
            "system": name,
            "metric": "em",
            "mean": 0.5,
            "low": 0.4,
            "high": 0.6,
            "n": 9,
        }
        for name in names
    ]
    plot = drawn(split_plot(pd.DataFrame(rows), names))
    figure = Figure(figsize=plot.size_inches, layout="constrained")
    plot.draw(figure)
    FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


def test_same_data_draw_the_same_and_leave_the_settings_of_others_alone() -> None:
    before = dict(rcParams)
    first, second = plots(), plots()
    assert len(first) == 5
    assert [plot.svg for plot in first] == [plot.svg for plot in second]
    assert dict(rcParams) == before


def test_plots_can_stand_in_one_strict_page() -> None:
    for plot in plots():
        elements = list(ElementTree.fromstring(plot.svg).iter())
        assert not [
            element.tag for element in elements if element.tag.endswith(("style", "script", "image", "metadata"))
        ]
        assert not [name for element in elements for name in element.attrib if name == "style" or name.startswith("on")]
        assert plot.svg.count("currentColor") > 5, "in the page's own ink, light or dark"
        assert "font-family" not in plot.svg
    ids = [name for plot in plots() for name in re.findall(r' id="([^"]+)"', plot.svg)]
    assert len(ids) == len(set(ids))


def test_what_is_referred_to_within_a_plot_is_there() -> None:
    for plot in plots():
        ids = set(re.findall(r' id="([^"]+)"', plot.svg))
        assert set(re.findall(r"(?:href=\"|url\()#([\w.-]+)", plot.svg)) == ids


def test_whiskers_end_at_the_percentiles_that_the_caption_names() -> None:
    box = box_of([1.0, 2.0, 3.0, 4.0], "naive")
    assert (box["whislo"], box["q1"], box["med"], box["whishi"]) == (1.15, 1.75, 2.5, pytest.approx(3.85))
    plot = latency_plot(QUESTIONS)
    assert "naive: median 2.00 s, 95 % within 2.90 s" in plot.caption


def test_mean_without_an_interval_has_no_whisker() -> None:
    bare = MEANS.assign(low=None, high=None)
    with_interval, without = drawn(cost_plot(QUESTIONS, MEANS)), drawn(cost_plot(QUESTIONS, bare))
    assert with_interval.svg.count("<use") > without.svg.count("<use"), "caps of the whisker"


@pytest.mark.parametrize(
    ("plot", "description", "labels"),
    [
        (
            cost_plot(QUESTIONS, MEANS),
            "EM in per cent. naive: 50.0 at 1.0 calls; judge: 75.0 at 7.0 calls.",
            {"naive", "judge", "model calls a question"},
        ),
        (
            latency_plot(QUESTIONS),
            "naive: median 2.00 s, 95 % within 2.90 s; judge: median 6.00 s, 95 % within 7.80 s",
            {"naive", "judge"},
        ),
        (
            failure_plot(FAILURES, SYSTEMS),
            "retrieval miss: naive 7, judge 2; judge false 0: naive 0, judge 3",
            {"retrieval miss", "judge false 0", "7", "2", "3"},
        ),
    ],
    ids=["cost", "latency", "failures"],
)
def test_every_figure_is_described_and_labelled(plot: Plot | None, description: str, labels: set[str]) -> None:
    assert alt(drawn(plot)) == description
    assert labels <= set(texts(drawn(plot)))


def test_plot_without_figures_is_none() -> None:
    assert cost_plot(QUESTIONS, MEANS[MEANS["metric"] == "f1"]) is None
    assert cost_plot(QUESTIONS.drop(columns=["llm_calls"]), MEANS) is None
    assert split_plot(SPLITS[:0], SYSTEMS) is None
    assert failure_plot(FAILURES[:0], SYSTEMS) is None
    assert confusion_plot({}) is None


def test_text_stays_text_in_any_script() -> None:
    plot = drawn(split_plot(SPLITS, SYSTEMS))
    assert {"单跳问题", "<b>&", "2"} <= set(texts(plot))
    assert "<b>" not in plot.svg


def test_confusion_shares_are_those_of_the_column() -> None:
    plot = drawn(confusion_plot(CONFUSIONS))
    assert {"1  (50 %)", "1  (100 %)", "0  (0 %)"} <= set(texts(plot))
    assert "all" not in texts(plot), "no chunk holds all of the gold"
    assert "judge, verdict 0: 1 with none gold, 1 with some gold" in alt(plot)


@pytest.mark.parametrize("count", [1, 9])
def test_any_number_of_systems_has_colours(count: int) -> None:
    many = pd.DataFrame({"system": [f"s{number}" for number in range(count)], "seconds": [1.0] * count})
    assert len(re.findall(r"s\d: median", alt(latency_plot(many)))) == count
