"""A run directory read again: its manifest, its rows, and the data set that they answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ...graphs.systems.registry import SYSTEMS
from ...modules.calls.prices import FREE, Cost, load_prices
from ...modules.errors import LoadingError, SettingsError
from ...modules.settings import load_settings
from ..datasets.questions import Dataset, EvalQuestion
from ..datasets.registry import load_dataset
from ..ragas.scores import RagasStore
from ..rows.store import Manifest, RunRow, RunStore, newest_attempts
from ..rows.trees import TreeStore
from ..runs.experiment import Experiment, load_experiment
from ..runs.jobs import choose_questions
from ..runs.limits import cost_of_row
from ..runs.manifest import experiment_in
from .frames import ks_of, question_frame


@dataclass(frozen=True, kw_only=True)
class LoadedRun:
    """The rows of a run directory, and what they answer."""

    folder: Path
    manifest: Manifest
    experiment: Experiment
    dataset: Dataset
    """Whole, not the choice of it that was asked."""
    rows: list[RunRow]
    """The newest attempts, at least one: by question as the data set has them, then by system as ``SYSTEMS`` has
    them, then by repeat, in whichever order they were finished."""
    replaced: tuple[RunRow, ...] = ()
    """Earlier attempts at questions that were asked again. They are scored nowhere, but were paid for."""
    trees: TreeStore
    """The search trees that were kept."""

    @property
    def questions(self) -> Mapping[str, EvalQuestion]:
        """Those of the data set by id."""
        return {question.id: question for question in self.dataset.questions}

    @property
    def baseline(self) -> str | None:
        """The experiment's baseline, if there are answers of it; see ``compare.compare_runs``."""
        chosen = self.experiment.baseline
        return chosen if chosen == "all" or any(row.system == chosen for row in self.rows) else None


def load_run(folder: Path) -> LoadedRun:
    """The newest rows of a run directory with the data set that they were asked of.

    Raises:
        LoadingError: There is no run, it has no row, or its data set cannot be read.
        SettingsError: The data set is no longer what the run was asked of.
    """
    store = RunStore(folder)
    manifest = store.read_manifest()
    attempts = store.read_attempts()
    rows = newest_attempts(attempts)
    if manifest is None or not rows:
        raise LoadingError(f"{folder} holds no finished question. Run `judgetree eval run --out {folder} …` first.")
    experiment = load_experiment(None, **experiment_in(manifest))
    dataset = load_dataset(experiment.dataset, split=experiment.split)
    identity = manifest.get("identity")
    if isinstance(identity, dict) and identity.get("dataset_digest") != dataset.digest:
        raise SettingsError(
            f"{experiment.dataset} has changed since {folder} was run, so its gold answers are others. "
            "Bring back the file of that run, or run again with another --out."
        )
    return LoadedRun(
        folder=folder,
        manifest=manifest,
        experiment=experiment,
        dataset=dataset,
        rows=_in_order(rows, dataset),
        replaced=_replaced(attempts, rows),
        trees=TreeStore(folder),
    )


def score_rows(run: LoadedRun) -> pd.DataFrame:
    """The scored rows of a run (see ``frames.question_frame``), with what RAGAS has scored and what calls cost."""
    ragas, prices = RagasStore(run.folder).read(), load_prices(load_settings().home)
    return question_frame(run.rows, run.dataset.questions, ks=ks_of(run.experiment.topk), ragas=ragas, prices=prices)


def missing_answers(run: LoadedRun) -> int:
    """Answers that the run is to have, of every system, question and repeat, and has not yet."""
    there = {row.place for row in run.rows}
    chosen = choose_questions(run.dataset, run.experiment).questions
    places = itertools.product(run.experiment.systems, chosen, range(run.experiment.repeats))
    return sum((system, question.id, repeat) not in there for system, question, repeat in places)


def paid_by_system(run: LoadedRun) -> dict[str, Cost]:
    """What each system's answers have cost, those that were asked again included, in the order of the rows."""
    prices = load_prices(load_settings().home)
    paid = {row.system: FREE for row in run.rows}
    for row in (*run.rows, *run.replaced):
        paid[row.system] += cost_of_row(row, prices)
    return paid


def _replaced(attempts: Iterable[RunRow], newest: Iterable[RunRow]) -> tuple[RunRow, ...]:
    kept = {id(row) for row in newest}
    return tuple(row for row in attempts if id(row) not in kept)


def _in_order(rows: Iterable[RunRow], dataset: Dataset) -> list[RunRow]:
    questions = {question.id: place for place, question in enumerate(dataset.questions)}
    systems: dict[str, int] = {name: place for place, name in enumerate(SYSTEMS)}

    def place(row: RunRow) -> tuple[int, int, int]:
        return (questions.get(row.question_id, len(questions)), systems.get(row.system, len(systems)), row.repeat)

    return sorted(rows, key=place)
