"""Labels by hand as training data for thresholds, weighed as the run has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...modules.digests import text_digest
from ...modules.errors import SettingsError
from ..datasets.questions import Dataset, EvalQuestion
from ..labels.judgements import Judgement, weighed_judgements
from ..rows.store import RunStore, part_of
from .data import ScoredCase, ScoredPassage, check_not_held_back

MIN_LABELS = 20
"""Fewest labels of needed passages, and of others, to fit a threshold on."""


@dataclass(frozen=True, kw_only=True)
class LabelledData:
    """The labelled passages of some runs."""

    cases: tuple[ScoredCase, ...]
    """One for each labelled query."""
    questions: Dataset
    """The questions of the data sets that the queries belong to."""
    digest: str
    """SHA-256 over passages and scores."""


def labelled_data(runs: Sequence[Path], *, split: str | None = None) -> LabelledData:
    """Read the settled labels of runs; each labelled passage weighs as many of its verdict as the run has for it.

    Raises:
        SettingsError: A run's questions are not known to be for training, or there are too few labels.
        LoadingError: A folder is no run, or its labels or trees are damaged.
    """
    judgements: list[Judgement] = []
    for run in runs:
        experiment = part_of(RunStore(run).read_manifest() or {}, "experiment")
        spec = str(experiment.get("dataset", ""))
        check_not_held_back(Path(spec.partition(":")[2] or spec).name, split)
        judgements += weighed_judgements(run)
    by_query: dict[str, list[Judgement]] = {}
    for each in {judgement.passage.id: judgement for judgement in judgements}.values():
        by_query.setdefault(each.passage.query, []).append(each)
    cases = tuple(
        ScoredCase(
            query=query,
            gold=tuple(map(_scored, (each for each in found if each.score > 0))),
            others=tuple(map(_scored, (each for each in found if each.score == 0))),
        )
        for query, found in by_query.items()
    )
    needed, other = sum(len(case.gold) for case in cases), sum(len(case.others) for case in cases)
    if min(needed, other) < MIN_LABELS:
        raise SettingsError(
            f"There are labels of {needed} needed and {other} other passages; {MIN_LABELS} of each are needed to fit a "
            "threshold. Label more: judgetree label RUN --count N."
        )
    asked = {each.passage.question_id: each.passage.question for each in judgements}
    return LabelledData(
        cases=cases,
        questions=Dataset(
            name="labels",
            questions=tuple(EvalQuestion(id=key, question=text, answers=()) for key, text in asked.items()),
        ),
        digest=text_digest("\n".join(sorted(f"{each.passage.id} {each.score}" for each in judgements))).hex(),
    )


def _scored(judgement: Judgement) -> ScoredPassage:
    return ScoredPassage(text=judgement.passage.text, score=judgement.score, weight=judgement.weight)
