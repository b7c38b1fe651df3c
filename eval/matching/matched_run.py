"""Runs in which opponents have the budget of a system: a pilot finds their options, then all systems are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ...modules.errors import RunLimitReached
from ...modules.settings import Settings, load_settings
from ..rows.opponents import MATCHING, Opponent, opponents_in
from ..rows.store import RunRow, RunStore
from ..runs.batch_run import RunOptions, run_experiment
from ..runs.experiment import Experiment
from ..runs.jobs import choose_questions, dataset_of, draw
from ..runs.runner import Progress, RunSummary
from .opponents import PILOT, find_opponents


def run_matched(
    experiment: Experiment,
    out: Path,
    *,
    options: RunOptions | None = None,
    settings: Settings | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_setup: Callable[[int, int, str], None] | None = None,
) -> RunSummary:
    """Ask as ``run_experiment`` does, after a pilot where the experiment has ``match_budget``.

    The limits hold for pilot and run together. Calls that both make are paid once, unless the model cache is off.

    Args:
        experiment: The questions and systems to ask.
        out: The run directory, created if missing.
        options: As for ``run_experiment``.
        settings: As for ``run_experiment``.
        on_progress: As for ``run_experiment``, in the pilot too.
        on_setup: As for ``run_experiment``.

    Raises:
        UserError: As for ``run_experiment``, or a system failed on most of the pilot's questions.
    """
    try:
        matched = match_budget(
            experiment, out, options=options, settings=settings, on_progress=on_progress, on_setup=on_setup
        )
    except _PilotStopped as stopped:
        return stopped.summary
    summary = run_experiment(
        matched.experiment,
        out,
        options=matched.options,
        settings=settings,
        on_progress=on_progress,
        on_setup=on_setup,
    )
    told = [each.words() for each in matched.opponents]
    calls, cached = summary.calls + matched.calls, summary.cached_calls + matched.cached_calls
    return replace(summary, calls=calls, cached_calls=cached, opponents=told)


@dataclass(frozen=True, kw_only=True)
class Matched:
    """An experiment whose opponents are found."""

    experiment: Experiment
    """With the opponents among its systems, and without ``match_budget``, which is the baseline unless one is named."""
    options: RunOptions
    """How to run it."""
    opponents: Sequence[Opponent] = ()
    calls: int = 0
    """Chat calls that were paid to find them now."""
    cached_calls: int = 0
    """Those that the cache answered."""


class _PilotStopped(RunLimitReached):
    """A limit of the run ended the pilot."""

    def __init__(self, summary: RunSummary) -> None:
        super().__init__(
            f"The pilot that matches budgets has reached {summary.stopped_by}. Its rows are kept: repeat the command "
            "with a higher limit."
        )
        self.summary = summary


@dataclass(kw_only=True)
class _Pilot:
    """The run over a few questions by which opponents are found, and what it took now."""

    store: RunStore
    experiment: Experiment
    """With ``match_budget``."""
    run: Callable[[Experiment, Path], RunSummary]
    calls: int = 0
    cached_calls: int = 0

    def opponents(self) -> Sequence[Opponent]:
        """Return the opponents that the pilot knows, once its settings are known to be these; else find them."""
        matches = str(self.experiment.match_budget)
        known = opponents_in(self.store.read_manifest() or {})
        if known and all(each.matches == matches for each in known):
            self._ask([matches], list(dict.fromkeys(row.question_id for row in self.store.read_rows())))
            return known
        questions = choose_questions(dataset_of(self.experiment), self.experiment).questions
        ids = [each.id for each in draw(questions, PILOT, seed=self.experiment.seed)]
        found = find_opponents(matches, lambda systems: self._ask(systems, ids), usual=dict(self.experiment))
        with self.store.held():
            documents = [each.to_document() for each in found]
            self.store.write_manifest({**(self.store.read_manifest() or {}), "opponents": documents})
        return found

    def _ask(self, systems: Sequence[str], ids: Sequence[str]) -> Sequence[RunRow]:
        """Ask what the pilot has no row of; its run refuses settings that differ from those of its rows."""
        changes = {"match_budget": None, "repeats": 1, "limit": None, "sample": None, "metrics": None, "baseline": None}
        asked = self.experiment.model_copy(update={**changes, "systems": tuple(systems), "ids": tuple(ids)})
        summary = self.run(asked, self.store.folder)
        self.calls += summary.calls
        self.cached_calls += summary.cached_calls
        if summary.stopped_by:
            raise _PilotStopped(replace(summary, calls=self.calls, cached_calls=self.cached_calls))
        return self.store.read_rows()


def match_budget(
    experiment: Experiment,
    out: Path,
    *,
    options: RunOptions | None = None,
    settings: Settings | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_setup: Callable[[int, int, str], None] | None = None,
) -> Matched:
    """Find the opponents of an experiment with ``match_budget``; those that the run directory has are taken.

    ``PILOT`` of the questions are drawn by the seed and asked of the system, and of candidates for its opponents.

    Raises:
        RunLimitReached: A limit of the run ended the pilot.
        UserError: As for ``run_matched``.
    """
    options = options or RunOptions()
    if experiment.match_budget is None:
        known = opponents_in(options.again.manifest) if options.again else ()
        found_before = [each.to_document() for each in known if each.system in experiment.systems]
        return Matched(experiment=experiment, options=replace(options, opponents=found_before))
    settings = settings or (options.again.settings if options.again else load_settings())
    pilot = _Pilot(
        store=RunStore(out / MATCHING),
        experiment=experiment,
        run=partial(
            run_experiment,
            options=RunOptions(accept_changes=options.accept_changes, workers=options.workers, paid_in=out, sweep=()),
            settings=settings,
            on_progress=on_progress,
            on_setup=on_setup,
        ),
    )
    opponents = pilot.opponents()
    systems = tuple(dict.fromkeys([*experiment.systems, *(each.system for each in opponents)]))
    return Matched(
        experiment=experiment.model_copy(
            update={
                "match_budget": None,
                "systems": systems,
                "baseline": experiment.baseline or experiment.match_budget,
            }
        ),
        options=replace(options, opponents=[each.to_document() for each in opponents], paid_in=pilot.store.folder),
        opponents=opponents,
        calls=pilot.calls,
        cached_calls=pilot.cached_calls,
    )
