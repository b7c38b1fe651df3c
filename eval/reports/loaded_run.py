"""A run directory read for a report: its manifest, its rows, and their data set."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ...graphs.config.variants import system_name
from ...graphs.systems.registry import SYSTEMS
from ...modules.calls.prices import FREE, Cost, Prices, load_prices
from ...modules.errors import LoadingError, SettingsError, did_you_mean
from ...modules.settings import Settings, load_settings
from ..datasets.questions import Dataset, EvalQuestion
from ..ragas.scores import RagasStore
from ..rows.cautions import lacks_all_gold
from ..rows.folder_kinds import why_no_run
from ..rows.opponents import MATCHING
from ..rows.provenance import provenance_of, provenance_words
from ..rows.store import Manifest, RunRow, RunStore, newest_attempts, part_of
from ..rows.trees import TreeStore
from ..runs.experiment import Experiment
from ..runs.gold import without_gold
from ..runs.jobs import choose_questions, dataset_of
from ..runs.limits import cost_of_row
from ..runs.manifest import experiment_in
from ..runs.start_folder import found_again
from ..scoring.own_metric import MetricStore
from ..scoring.run_scorer import Method, Sample
from ..scoring.scores import ScorerT
from .frames import ks_of, question_frame


@dataclass(frozen=True, kw_only=True)
class LoadedRun:
    """The rows of a run directory with their data set."""

    folder: Path
    manifest: Manifest
    experiment: Experiment
    dataset: Dataset
    """The whole data set, not only the questions that were asked."""
    rows: list[RunRow]
    """The newest attempts, one or more, by question in data set order, system in ``SYSTEMS`` order and then in that of
    the experiment, and repeat."""
    replaced: tuple[RunRow, ...] = ()
    """Earlier attempts at questions that were asked again; they are not scored, but count as paid."""
    trees: TreeStore
    """The search trees of the run."""
    prices: Prices
    """What models cost."""

    @property
    def questions(self) -> Mapping[str, EvalQuestion]:
        """Questions of the data set by id."""
        return {question.id: question for question in self.dataset.questions}

    @property
    def baseline(self) -> str | None:
        """The experiment's baseline if it answered in this run; see ``compare.compare_runs``."""
        chosen = self.experiment.baseline
        return chosen if chosen == "all" or any(row.system == chosen for row in self.rows) else None


def load_run(folder: Path, settings: Settings | None = None) -> LoadedRun:
    """Load the newest rows of a run directory and their data set, with the prices of the settings' home.

    Raises:
        LoadingError: There is no run, it has no row, or its data set cannot be read.
        SettingsError: The data set has changed since the run.
    """
    check_exists(folder)
    store = RunStore(folder)
    manifest = store.read_manifest()
    attempts = store.read_attempts()
    rows = newest_attempts(attempts)
    if manifest is None and rows:
        raise LoadingError(
            f"{folder} has rows, but no manifest. Repeat the command that made the run, with the same options: it "
            "keeps them, and asks only the questions that have none."
        )
    if manifest is None or not rows:
        raise LoadingError(why_no_run(folder))
    experiment = experiment_in(manifest)
    dataset = dataset_of(found_again(experiment, manifest, folder))
    identity = part_of(manifest, "identity")
    if identity and identity.get("dataset_digest") != dataset.digest:
        raise SettingsError(
            f"{experiment.dataset} has changed since {folder} was run, so its gold answers may differ. Restore the "
            "file of that run, or ask them again by `judgetree eval run` into another folder."
        )
    if lacks_all_gold(manifest):
        dataset = without_gold(dataset)
    kept = {id(row) for row in rows}
    return LoadedRun(
        folder=folder,
        manifest=manifest,
        experiment=experiment,
        dataset=dataset,
        rows=_in_order(rows, dataset, experiment.systems),
        replaced=tuple(row for row in attempts if id(row) not in kept),
        trees=TreeStore(folder),
        prices=load_prices((settings or load_settings()).home),
    )


def check_exists(folder: Path) -> None:
    """Check that there is a folder of a run.

    Raises:
        LoadingError: There is none; the message names the one that may be meant.
    """
    if not folder.is_dir():
        near = did_you_mean(folder.name, (each.name for each in folder.parent.glob("*") if each.is_dir()))
        raise LoadingError(
            f"There is no run {folder}.{near} Name the folder that `judgetree eval run --out FOLDER` has made."
        )


def score_rows(run: LoadedRun, cut_offs: Iterable[int] = ()) -> pd.DataFrame:
    """Score the rows of a run (``frames.question_frame``), with their RAGAS and own scores and their costs.

    ``cut_offs`` are further ones of recall@k and all@k; see ``frames.ks_of``.
    """
    return question_frame(
        run.rows,
        run.dataset.questions,
        ks=ks_of(run.experiment.topk, cut_offs),
        ragas=RagasStore(run.folder).read(),
        own=MetricStore(run.folder).read(),
        prices=run.prices,
    )


def missing_answers(run: LoadedRun) -> int:
    """Count the answers of systems, questions and repeats that the run still lacks."""
    there = {row.place for row in run.rows}
    chosen = choose_questions(run.dataset, run.experiment).questions
    places = itertools.product(run.experiment.systems, chosen, range(run.experiment.repeats))
    return sum((system, question.id, repeat) not in there for system, question, repeat in places)


def paid_for_pilot(run: LoadedRun) -> Cost | None:
    """Add up the cost of the pilot that matched budgets, of all systems that it tried; None without a pilot."""
    rows = RunStore(run.folder / MATCHING).read_attempts() if (run.folder / MATCHING).is_dir() else []
    return sum((cost_of_row(row, run.prices) for row in rows), FREE) if rows else None


def lost_trees(run: LoadedRun) -> int:
    """Count the rows whose search tree was written, but is no longer in the run."""
    return sum(row.tree is not None and row.thread_id not in run.trees for row in run.rows)


def paid_by_system(run: LoadedRun) -> dict[str, Cost]:
    """Add up the cost of each system's answers, replaced attempts included, in the order of the rows."""
    paid = {row.system: FREE for row in run.rows}
    for row in (*run.rows, *run.replaced):
        paid[row.system] += cost_of_row(row, run.prices)
    return paid


def words_of_run(folder: Path) -> str:
    """Say what a run was made of, by its manifest and rows alone; see ``provenance_of``."""
    store = RunStore(folder)
    rows = store.read_rows()
    systems, questions = dict.fromkeys(row.system for row in rows), {row.question_id for row in rows}
    facts = provenance_of(store.read_manifest() or {}, systems, asked=len(questions))
    return provenance_words({"run": str(folder), **facts})


def _in_order(rows: Iterable[RunRow], dataset: Dataset, systems: Sequence[str]) -> list[RunRow]:
    questions = {question.id: place for place, question in enumerate(dataset.questions)}
    kinds = {name: place for place, name in enumerate(SYSTEMS)}
    named = {name: place for place, name in enumerate(systems)}

    def place(row: RunRow) -> tuple[int, int, int, str, int]:
        kind = kinds.get(system_name(row.system), len(kinds))
        order = named.get(row.system, len(named))
        return (questions.get(row.question_id, len(questions)), kind, order, row.system, row.repeat)

    return sorted(rows, key=place)


def samples_of(
    run: LoadedRun,
    methods: Sequence[Method[ScorerT]],
    *,
    systems: tuple[str, ...] | None = None,
    limit: int | None = None,
) -> list[Sample[ScorerT]]:
    """Pair the rows of a run with the metrics that score them.

    Args:
        run: The run, whose newest attempts are scored.
        methods: The metrics.
        systems: Systems to score; None for all.
        limit: Number of questions to score, in the order of the run; None for all.

    Raises:
        SettingsError: ``systems`` is empty or names a system that the run lacks.
    """
    there = dict.fromkeys(row.system for row in run.rows)
    if systems == ():
        raise SettingsError(f"--systems is empty. The run has: {', '.join(there)}.")
    if unknown := sorted(set(systems or ()) - set(there)):
        raise SettingsError(f"The run has no system {', '.join(unknown)}. It has: {', '.join(there)}.")
    first = set(list(dict.fromkeys(row.question_id for row in run.rows))[:limit])
    questions, wanted = run.questions, there if systems is None else systems
    return [
        Sample(method=method, row=row, question=questions[row.question_id])
        for row in run.rows
        if row.question_id in first and row.question_id in questions and row.system in wanted
        for method in methods
    ]
