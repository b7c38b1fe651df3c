"""Running a sweep: a run directory for each combination, one budget and one cache of model calls over all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from ...graphs.search.depth import check_depth
from ...modules.calls.prices import Cost, Prices, load_prices
from ...modules.calls.record import NOTHING, Spend
from ...modules.errors import LoadingError, RunLimitReached, SettingsError
from ...modules.settings import Settings, load_settings
from ...modules.storage.formats import FORMAT_KEY, check_format, format_of
from ...modules.storage.write_errors import refusing_full_disk
from ..matching.matched_run import match_budget, run_matched
from ..rows.folder_kinds import SWEEP_FILE, is_sweep_folder
from ..rows.opponents import MATCHING
from ..rows.store import RunStore
from ..rows.two_copies import read_either, write_twice
from ..runs.batch_run import RunOptions
from ..runs.experiment import Experiment
from ..runs.pilot import RunEstimate, estimate_run
from ..runs.runner import Progress, RunSummary, paid_in
from .grid import Point, Sweep

_REPAIR = (
    "Move it away and repeat the sweep's command: the runs in its folders are kept, and only what they lack is asked. "
    "Or give another --out."
)

Watch = Callable[[Point, int, int], tuple[Callable[[int, int, str], None] | None, Callable[[Progress], None] | None]]
"""Called with a point, its place from 1 and their number before it is run; returns ``on_setup`` and ``on_progress``."""


@dataclass(frozen=True, kw_only=True)
class SweepSummary:
    """What came of one call of ``run_sweep``."""

    runs: tuple[tuple[Point, RunSummary], ...]
    """In the order of the grid; a sweep that reached a limit has fewer than its grid."""
    cost: Cost
    """Cost of all runs in the folder so far."""
    stopped_by: str = ""
    """The limit that ended it; ``""`` if every combination was run."""


@dataclass(frozen=True, kw_only=True)
class SavedPoint:
    """One combination of a sweep on disk."""

    folder: Path
    values: dict[str, object]


def run_sweep(
    sweep: Sweep,
    out: Path,
    *,
    options: RunOptions | None = None,
    settings: Settings | None = None,
    watch: Watch | None = None,
) -> SweepSummary:
    """Run each combination into a folder of its own in ``out``; the same call continues after a stop.

    ``max_calls``, ``max_tokens`` and ``max_cost`` are for all runs in ``out``. Replies are shared by the model cache,
    so that a call which two combinations have in common is paid once.

    Args:
        sweep: The grid.
        out: The folder of the sweep; combinations that it holds already are kept.
        options: As for ``run_experiment``.
        settings: As for ``run_experiment``.
        watch: Gives the callbacks of each run.

    Raises:
        UserError: ``out`` holds a run or another sweep, or a run cannot be made.
    """
    _record(sweep, out)
    runs: list[tuple[Point, RunSummary]] = []
    own = settings or load_settings()
    prices, stopped_by = load_prices(own.home), ""
    for place, point in enumerate(sweep.points, start=1):
        experiment, stopped_by = _within_limits(point, out, own, prices)
        if stopped_by:
            break
        on_setup, on_progress = watch(point, place, len(sweep.points)) if watch else (None, None)
        summary = run_matched(
            experiment,
            out / point.name,
            options=_options_of(place, sweep, options),
            settings=settings,
            on_setup=on_setup,
            on_progress=on_progress,
        )
        runs.append((point, summary))
        if summary.stopped_by:
            stopped_by = _whole_limit(summary.stopped_by, point.experiment)
            break
    folders = [saved.folder for saved in saved_points(out)]
    return SweepSummary(runs=tuple(runs), cost=Cost.of(_spent(folders, own, prices)), stopped_by=stopped_by)


def estimate_sweep(
    sweep: Sweep,
    out: Path,
    *,
    pilot: int,
    options: RunOptions | None = None,
    settings: Settings | None = None,
    watch: Watch | None = None,
) -> list[tuple[Point, RunEstimate]]:
    """Ask a pilot of each combination, and estimate its rest; see ``pilot.estimate_run``. The pilots are kept.

    ``max_calls``, ``max_tokens`` and ``max_cost`` are for all runs in ``out``, as for ``run_sweep``.

    Raises:
        RunLimitReached: The pilots have reached a limit of the sweep before its last combination.
        UserError: As for ``run_sweep``, or a system has no answer to estimate from.
    """
    _record(sweep, out)
    own, estimates = settings or load_settings(), []
    prices = load_prices(own.home)
    for place, point in enumerate(sweep.points, start=1):
        experiment, stopped_by = _within_limits(point, out, own, prices)
        if stopped_by:
            raise RunLimitReached(
                f"The pilots have reached {stopped_by} before {point.label}. Their rows are kept in {out}: repeat the "
                "command with a higher limit to estimate the whole sweep."
            )
        on_setup, on_progress = watch(point, place, len(sweep.points)) if watch else (None, None)
        matched = match_budget(
            experiment,
            out / point.name,
            options=_options_of(place, sweep, options),
            settings=settings,
            on_setup=on_setup,
            on_progress=on_progress,
        )
        estimate = estimate_run(
            matched.experiment,
            out / point.name,
            pilot=pilot,
            options=matched.options,
            settings=settings,
            on_setup=on_setup,
            on_progress=on_progress,
        )
        estimates.append((point, estimate))
    return estimates


def _options_of(place: int, sweep: Sweep, options: RunOptions | None) -> RunOptions:
    """Return the options of the run at a place from 1; the first names the keys that have no effect in any run."""
    named = tuple(point.experiment for point in sweep.points) if place == 1 else ()
    return replace(options or RunOptions(), sweep=named)


def saved_points(out: Path) -> list[SavedPoint]:
    """Read the combinations of a sweep's folder, in the order of its grid.

    Raises:
        LoadingError: The folder holds no sweep, or its file is damaged.
    """
    file = out / SWEEP_FILE
    try:
        content = cast("dict[str, dict[str, dict[str, object]]]", read_either(file, what="the sweep", advice=_REPAIR))
        check_format(content.get(FORMAT_KEY), "sweep", where=str(file), remedy=_REPAIR)
        return [SavedPoint(folder=out / name, values=dict(values)) for name, values in content["points"].items()]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LoadingError(f"The sweep {file} cannot be read ({error}). {_REPAIR}") from error


def _record(sweep: Sweep, out: Path) -> None:
    for point in sweep.points:  # before the first of them is paid
        check_depth(point.experiment.max_rec_depth)
    if RunStore(out).read_manifest() is not None:
        raise SettingsError(f"{out} holds a run, and a sweep needs a folder of its own. Give another --out.")
    known = {point.folder.name: point.values for point in saved_points(out)} if is_sweep_folder(out) else {}
    keys = next((list(values) for values in known.values()), list(sweep.axes))
    if keys != list(sweep.axes):
        raise SettingsError(
            f"{out} holds a sweep of {', '.join(keys)}, not of {', '.join(sweep.axes)}. Give another --out."
        )
    points = known | {point.name: dict(point.values) for point in sweep.points}
    with refusing_full_disk(out):
        out.mkdir(parents=True, exist_ok=True)
    content = {FORMAT_KEY: format_of("sweep"), "points": points}
    write_twice(out / SWEEP_FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _within_limits(point: Point, out: Path, settings: Settings, prices: Prices) -> tuple[Experiment, str]:
    """Return the experiment with what the other combinations leave of the limits; or the limit that is reached."""
    experiment = point.experiment
    others = [saved.folder for saved in saved_points(out) if saved.folder.name != point.name]
    spent = _spent(others, settings, prices)
    used_of = {"max_calls": spent.calls, "max_tokens": spent.tokens, "max_cost": spent.usd}
    left: dict[str, object] = {}
    for name, used in used_of.items():
        limit = getattr(experiment, name)
        if limit is not None:
            if limit <= used:
                return experiment, f"{name}={limit:g}"
            left[name] = limit - used
    return experiment.model_copy(update=left), ""


def _whole_limit(stopped_by: str, experiment: Experiment) -> str:
    name = stopped_by.partition("=")[0]
    return f"{name}={getattr(experiment, name, None):g}" if hasattr(experiment, name) else stopped_by


def _spent(folders: Iterable[Path], settings: Settings, prices: Prices) -> Spend:
    """Return what the runs in these folders have paid, for questions without a row too."""
    return sum((paid_in(each, settings, prices) for one in folders for each in (one, one / MATCHING)), NOTHING)
