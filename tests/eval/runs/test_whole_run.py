"""What several commands that work in one run directory have asked together."""

from __future__ import annotations

import pytest

from judgetree.evaluation.datasets.questions import Dataset, EvalQuestion
from judgetree.evaluation.runs.batch_run import merged
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.jobs import choose_questions

DATASET = Dataset(
    name="set",
    questions=tuple(EvalQuestion(id=f"q{number}", question=f"{number}?", answers=()) for number in range(20)),
)


def experiment(**keys: object) -> Experiment:
    return Experiment.model_validate({"dataset": "x:y", **keys})


def asked(each: Experiment) -> list[str]:
    return [question.id for question in choose_questions(DATASET, each).questions]


@pytest.mark.parametrize(
    ("known", "further", "choice"),
    [
        ({"limit": 2}, {}, {}),
        ({}, {"limit": 2}, {}),
        ({"limit": 2}, {"limit": 5}, {"limit": 5}),
        ({"sample": 5, "seed": 3}, {"sample": 2, "seed": 3}, {"sample": 5}),
        ({"sample": 2, "seed": 3}, {"sample": 5, "seed": 4}, None),
        ({"limit": 2}, {"ids": ["q7", "q3"]}, None),
        ({"limit": 2}, {"ids": ["q0"]}, {"limit": 2}),
    ],
)
def test_both_ask_questions(
    known: dict[str, object], further: dict[str, object], choice: dict[str, object] | None
) -> None:
    one, two = experiment(**known), experiment(**further)
    both = merged(one, two, DATASET)
    assert set(asked(both)) == {*asked(one), *asked(two)}
    if choice is not None:
        kept = both.model_dump(include={"limit", "sample", "ids"}, exclude_none=True)
        assert kept == choice


def test_systems_repeats_metrics_and_limits_are_those_of_both() -> None:
    one = experiment(systems=["judge"], repeats=3, metrics=["em"], max_calls=10, max_cost=1.0, cache="off", seed=1)
    two = experiment(systems=["llm", "judge"], metrics=["f1", "em"], max_calls=50, cache="replay", seed=2)
    both = merged(one, two, DATASET)
    assert (both.systems, both.repeats, both.metrics) == (("llm", "judge"), 3, ("em", "f1"))
    assert (both.max_calls, both.max_cost, both.cache, both.seed) == (50, None, "off", 2)
    assert both.identity() == one.identity()
