"""A batch run from its experiment to its finished rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..modules.settings import Settings, load_settings
from .dataset_registry import load_dataset
from .dataset_rows import select_questions
from .experiment import Experiment
from .manifest import identity_of, manifest_of, refuse_other_run
from .questions import Dataset
from .run_store import RunStore, newest_attempts
from .runner import Progress, RunSummary, Services, Spending, plan_jobs, run_questions


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How to go on with a run that was begun before."""

    retry_failed: bool = False
    """Ask failed questions again."""
    force: bool = False
    """Ask everything again, as new attempts."""


def run(
    experiment: Experiment,
    out: Path,
    *,
    options: RunOptions = RunOptions(),
    settings: Settings | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_setup: Callable[[int, int, str], None] | None = None,
) -> RunSummary:
    """Ask every question of the experiment that ``out`` has no row for yet; the rows are in ``RunStore(out)``.

    Args:
        experiment: What to ask, of which systems.
        out: The run directory; made if it is not there.
        options: Whether to ask again what is there.
        settings: None reads environment and ``.env``; models and embeddings of the experiment win.
        on_progress: Called, on judgetree's own thread, as each question is finished.
        on_setup: Told (done, total, stage) while the corpus is indexed or a local model is made ready.

    Raises:
        UserError: Something to mend: data set, settings, a directory that holds another run or is in use.
    """
    settings = _settings_of(experiment, settings or load_settings())
    whole = load_dataset(experiment.dataset, split=experiment.split)
    dataset = select_questions(whole, limit=experiment.limit, ids=experiment.ids)
    store = RunStore(out)
    with store.held():
        run_id = _enter(store, experiment, whole, settings)
        store.mend()
        attempts = store.read_attempts()
        rows = newest_attempts(attempts)
        jobs = plan_jobs(experiment, dataset.questions, rows, retry_failed=options.retry_failed, force=options.force)
        wanted = len(dataset.questions) * len(experiment.systems) * experiment.repeats
        if not jobs:
            return RunSummary(asked=0, kept=wanted, failed=0)
        with Services(experiment, dataset, settings, on_progress=on_setup) as services:
            spending = Spending(experiment, attempts)
            summary = run_questions(services, store, run_id, jobs, spending=spending, on_progress=on_progress)
        return replace(summary, kept=wanted - len(jobs))


def _settings_of(experiment: Experiment, settings: Settings) -> Settings:
    chosen = {"llm": experiment.llm, "judge_llm": experiment.judge_llm, "embeddings": experiment.embeddings}
    return settings.model_copy(update={name: value for name, value in chosen.items() if value is not None})


def _enter(store: RunStore, experiment: Experiment, dataset: Dataset, settings: Settings) -> str:
    manifest = store.read_manifest()
    if manifest is None:
        manifest = manifest_of(experiment, dataset, settings)
        store.write_manifest(manifest)
    else:
        refuse_other_run(manifest, identity_of(experiment, dataset, settings), where=store.folder)
    return str(manifest["run_id"])
