"""One call that runs an experiment and scores it, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..modules.config.completion import completes
from ..modules.errors import SettingsError
from ..modules.settings import Settings
from .matching.matched_run import run_matched
from .question_files.kept_questions import with_questions_kept
from .reports.report import Report, load_report
from .runs.batch_run import RunOptions
from .runs.experiment import Experiment, experiment_keys, load_experiment
from .runs.rerun import load_rerun
from .runs.runner import Progress
from .sweeps.grid import SWEPT


@completes(Experiment)
def run(
    experiment: Experiment | Path | str | None = None,
    *,
    out: Path | str,
    options: RunOptions | None = None,
    settings: Settings | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_setup: Callable[[int, int, str], None] | None = None,
    **keys: object,
) -> Report:
    """Ask the questions that ``out`` has no answer to yet, and score all its answers.

    Works in a notebook cell. The same call resumes a stopped run, and scores a finished one without model calls.

    >>> import judgetree.evaluation as evaluation
    >>> report = evaluation.run(dataset="hotpotqa:dev.json", sample=100, out="runs/a")  # doctest: +SKIP
    >>> report.systems.query("metric == 'f1'")  # doctest: +SKIP

    Args:
        experiment: An experiment, its YAML file, or the manifest or directory of a run to repeat. None takes ``keys``
            alone.
        out: The run directory, created if missing.
        options: Which questions to ask again; None asks the missing ones.
        settings: None reads environment and ``.env``; models and embeddings of the experiment win.
        on_progress: Called on judgetree's background thread after each question.
        on_setup: Called with (done, total, stage) while the corpus is indexed or a local model is loaded.
        keys: Keys of ``Experiment``; they win over those of ``experiment``. ``questions`` may also be a DataFrame, or a
            list of questions or of mappings, with the columns of a questions file; they are kept in ``out``.

    Returns:
        The report. ``.questions`` has a row for each question of each system, ``.systems`` the means with intervals.

    Raises:
        UserError: A wrong key, data set or setting, or a directory that holds another run or is in use.
    """
    options = options or RunOptions()
    keys = with_questions_kept(keys, Path(out))
    path = Path(experiment) if isinstance(experiment, str | Path) else None
    if path is not None and (path.suffix == ".json" or path.is_dir()):
        rerun = load_rerun(path, settings=settings, **keys)
        options, settings, chosen = replace(options, again=rerun), rerun.settings, rerun.experiment
    else:
        chosen = _experiment(experiment, keys)
    run_matched(chosen, Path(out), options=options, settings=settings, on_progress=on_progress, on_setup=on_setup)
    return load_report(Path(out), settings=settings)


def _experiment(experiment: Experiment | Path | str | None, keys: dict[str, object]) -> Experiment:
    if isinstance(experiment, Experiment):
        # A dump would have its secrets starred out.
        set_before = {name: getattr(experiment, name) for name in experiment.model_fields_set}
        return load_experiment(None, **{**set_before, **keys})
    path = Path(experiment) if experiment is not None else None
    given = experiment_keys(path, **keys)
    if listed := [name for name in SWEPT if isinstance(given.get(name), list | tuple)]:
        raise SettingsError(f"{', '.join(listed)} lists values: run the grid with evaluation.sweep, or give one value.")
    if experiment is None and not keys:
        raise SettingsError("No experiment: give an experiment, a YAML file, or at least dataset=NAME:PATH.")
    return load_experiment(path, **keys)
