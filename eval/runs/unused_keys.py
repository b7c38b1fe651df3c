"""Keys of an experiment that have no effect on its run."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...graphs.config.given_keys import described
from ...graphs.systems.registry import find_system
from ...modules.config.config import Trait
from ...modules.config.effects import has_effect, words_without_effect
from ..datasets.questions import Dataset
from .experiment import Experiment

logger = logging.getLogger(__name__)


def name_unused_keys(experiments: Sequence[Experiment], dataset: Dataset) -> None:
    """Log a warning for each key that has no effect on any of the experiments, which share a data set."""
    for name, field in Experiment.model_fields.items():
        given = [each for each in experiments if getattr(each, name) != field.default]
        if given and not any(_has_effect(each, name, dataset) for each in given):
            logger.warning(words_without_effect(Experiment, name, described(getattr(given[0], name))))


def _has_effect(experiment: Experiment, name: str, dataset: Dataset) -> bool:
    has: set[Trait] = {"dialogues"} if dataset.is_conversational else set()
    for system in experiment.systems:
        has |= find_system(system).has
    return has_effect(Experiment, name, has, lambda key: getattr(experiment, key))
