"""Which questions of a data set an experiment asks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ..runs.experiment import Experiment
from .questions import Dataset
from .rows import select_questions


def choose_questions(dataset: Dataset, experiment: Experiment) -> Dataset:
    """The data set with the questions that ``limit``, ``sample`` and ``ids`` name, in file order; the corpus stays.

    Raises:
        SettingsError: ``ids`` names a question that the data set does not have.
    """
    chosen = select_questions(dataset, limit=experiment.limit, ids=experiment.ids)
    if experiment.sample is None:
        return chosen
    drawn = draw((question.id for question in chosen.questions), experiment.sample, seed=experiment.seed)
    return select_questions(chosen, ids=drawn)


def draw(ids: Iterable[str], size: int, *, seed: int) -> list[str]:
    """So many of the ids at random, all of them if there are no more; with a larger size, the same and others.

    The order of the ids does not matter: those with the smallest SHA-256 of seed and id are taken, which is the same
    on every machine and in every version of Python.
    """
    return sorted(ids, key=lambda each: hashlib.sha256(f"{seed}\x00{each}".encode()).digest())[:size]
