"""The experiment of a run directory: what all commands that worked in it have asked together.

A run grows: by more questions, systems and repeats, each asked by a command of its own. Its manifest says what all of
them come to, so that the run can be done again and reported as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...graphs.systems.registry import SYSTEMS
from ..datasets.questions import Dataset
from .choice import choose_questions
from .experiment import Experiment

Number = TypeVar("Number", int, float)


def joined(known: Experiment, further: Experiment, dataset: Dataset) -> Experiment:
    """An experiment that asks every question of every system and repeat that one of two experiments asks.

    Limits on what a run may spend are the larger ones, seed and number of questions at once those of ``further``, and
    metrics those of both. What a run directory's rows must share is the same in both.

    Args:
        known: What was asked before.
        further: What is asked now, of the same data.
        dataset: The whole data set.

    Raises:
        SettingsError: One of them names a question that the data set does not have.
    """
    asked = {*known.systems, *further.systems}
    changes: dict[str, object] = {
        "systems": tuple(system for system in SYSTEMS if system in asked),
        "repeats": max(known.repeats, further.repeats),
        "metrics": _both(known.metrics, further.metrics),
        "max_calls": _larger(known.max_calls, further.max_calls),
        "max_tokens": _larger(known.max_tokens, further.max_tokens),
        "max_cost": _larger(known.max_cost, further.max_cost),
        "cache": known.cache,
        **_choice(known, further, dataset),
    }
    return further.model_copy(update=changes)


def _choice(known: Experiment, further: Experiment, dataset: Dataset) -> dict[str, object]:
    """Limit, sample, seed and ids that give the questions of both, in as few words as possible."""
    before, now = ({question.id for question in choose_questions(dataset, each).questions} for each in (known, further))
    for each, chosen, other in ((further, now, before), (known, before, now)):
        if other <= chosen:
            return {"limit": each.limit, "sample": each.sample, "seed": each.seed, "ids": each.ids}
    ids = tuple(question.id for question in dataset.questions if question.id in before | now)
    return {"limit": None, "sample": None, "ids": ids}


def _both(known: Sequence[str] | None, further: Sequence[str] | None) -> tuple[str, ...] | None:
    return tuple(dict.fromkeys([*(known or ()), *(further or ())])) or None


def _larger(known: Number | None, further: Number | None) -> Number | None:
    """None is no limit."""
    return None if known is None or further is None else max(known, further)
