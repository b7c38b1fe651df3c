"""Which questions of a data set an experiment asks."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from ..datasets.dialogue_turns import with_parents
from ..datasets.questions import Dataset
from ..datasets.rows import select_questions
from .experiment import Experiment


def choose_questions(dataset: Dataset, experiment: Experiment) -> Dataset:
    """The data set with the questions that ``limit``, ``sample`` and ``ids`` name, in file order; the corpus stays.

    A turn that is answered in its own conversation comes with those before it on its path (see ``with_paths``).

    Raises:
        SettingsError: ``ids`` names a question that the data set does not have.
    """
    chosen = select_questions(dataset, limit=experiment.limit, ids=experiment.ids)
    names = [question.id for question in chosen.questions]
    if experiment.sample is not None:
        names = draw(names, experiment.sample, seed=experiment.seed)
    return with_paths(dataset, names, experiment)


def with_paths(dataset: Dataset, chosen: Collection[str], experiment: Experiment) -> Dataset:
    """The data set with the chosen questions, and all that must be answered for them to be asked.

    Turns bring along those before them on their paths, unless their history is given.

    Raises:
        SettingsError: ``chosen`` is empty or names a question that the data set does not have.
    """
    if experiment.history == "given":
        return select_questions(dataset, ids=chosen)
    return with_parents(dataset, chosen)


def draw(ids: Iterable[str], size: int, *, seed: int) -> list[str]:
    """So many of the ids at random, all of them if there are no more; with a larger size, the same and others.

    The order of the ids does not matter: those with the smallest SHA-256 of seed and id are taken, which is the same
    on every machine and in every version of Python.
    """
    return sorted(ids, key=lambda each: hashlib.sha256(f"{seed}\x00{each}".encode()).digest())[:size]
