"""The contract of metrics: which ones keep it, and which rule a broken one breaks."""

from __future__ import annotations

import itertools

import pytest

from judgetree.evaluation import MetricSample
from judgetree.modules.calls.usage import CallMeter
from judgetree.testing import ContractError, check_metric


def length(sample: MetricSample) -> float | None:
    return None if sample.status == "refused" else min(1.0, len(sample.answer) / 100)


class Stars:
    range = (0, 5)

    async def __call__(self, sample: MetricSample, *, meter: CallMeter) -> float:
        return 5 * len(sample.gold_answers) / 2


def test_metrics_that_keep_the_contract() -> None:
    check_metric(length)
    check_metric(Stars)
    check_metric(Stars())


def too_much(sample: MetricSample) -> float:
    return 3


def text(sample: MetricSample) -> str:
    return "0.5"


def needs_gold(sample: MetricSample) -> float:
    return float(sample.answer == sample.gold_answers[0])


COUNT = itertools.count()


def forgetful(sample: MetricSample) -> float:
    return 1 / (1 + next(COUNT))


class NeedsModel:
    def __init__(self, llm: object) -> None:
        self.llm = llm


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (too_much, "gave 3, which is no number from 0 to 1"),
        (text, "gave '0.5', which is no number"),
        (needs_gold, "it raised IndexError"),
        (forgetful, "the same score each time"),
        (NeedsModel, "checked as an object made with one"),
        ("math:pi", "Name a function that takes a sample"),
        ("nowhere:at_all", "cannot be imported"),
    ],
)
def test_a_broken_metric_is_told_which_rule_it_breaks(metric: object, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        check_metric(metric)  # type: ignore[arg-type]
