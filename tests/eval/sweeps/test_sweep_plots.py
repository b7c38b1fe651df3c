"""The plots of a sweep: what they name, whatever the values of the swept keys are."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from judgetree.evaluation.reports.inline_svg import Plot
from judgetree.evaluation.sweeps.sweep_plots import sweep_plots


def plots(values: Sequence[str]) -> list[Plot]:
    count = len(values)
    systems = pd.DataFrame(
        {"llm": values, "system": "naive", "metric": "em", "mean": 0.5, "low": 0.4, "high": 0.6, "n": 9}
    )
    questions = pd.DataFrame({"llm": values, "system": ["naive"] * count, "llm_calls": [1] * count})
    return sweep_plots(systems, questions, ["llm"])


def test_long_values_are_shown_by_their_ends_and_described_whole() -> None:
    address = "http://127.0.0.1:8000/v1#qwen2.5-14b-instruct"
    for plot in plots([address, "$x_1$\nb"]):
        shown = re.findall(r"<text[^>]*>([^<]*)</text>", plot.svg)
        assert max(map(len, shown)) <= 50, shown
        assert "…-14b-instruct" in " ".join(shown)
        assert address in plot.alt


def test_a_point_of_many_combinations_names_the_first_of_them() -> None:
    by_combination, against_calls = plots([f"value {number}" for number in range(60)])
    assert "value 0 / value 1 / value 2 and 57 more" in against_calls.svg
    assert by_combination.size_inches[0] <= 24
