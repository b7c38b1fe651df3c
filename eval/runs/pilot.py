"""Estimate of the rest of a run from its answered questions: calls, tokens, money, time.

Needs scipy (extra ``eval``).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from scipy import stats

from ...modules.calls.prices import FREE, LOCAL, Cost, Prices, load_prices
from ...modules.errors import SettingsError
from ...modules.llm.rate_limit import MINUTE_S
from ...modules.settings import Settings, load_settings
from ..metrics.intervals import ALPHA
from ..rows.store import RunRow, RunStore
from .batch_run import RunOptions, run_experiment, with_experiment
from .experiment import Experiment
from .jobs import choose_questions, dataset_of, plan_jobs
from .limits import cost_of_row, uncached_cost_of_row
from .runner import Progress

PILOT = 10
"""Default number of pilot questions for each system."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A sum over the remaining questions, with its 95 % interval."""

    value: float
    low: float | None
    """None for a single answer, which has no variance."""
    high: float | None

    def __add__(self, other: Expected) -> Expected:
        """Add values and bounds; the interval of the sum is too wide rather than too narrow."""
        low = None if self.low is None or other.low is None else self.low + other.low
        high = None if self.high is None or other.high is None else self.high + other.high
        return Expected(value=self.value + other.value, low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class SystemEstimate:
    """Estimate of the rest for one system, as if the model cache were empty."""

    system: str
    answered: int
    """Number of questions behind the estimate, failed ones left out."""
    left: int
    """Number of remaining questions, repeats counted."""
    calls: Expected
    tokens: Expected
    """Tokens of chat prompts and completions."""
    known_usd: Expected
    is_whole: bool
    """Whether ``known_usd`` is the whole cost, or only the part with known prices."""
    seconds: Expected
    """Wall time at the concurrency of the answered questions."""

    def __add__(self, other: SystemEstimate) -> SystemEstimate:
        return SystemEstimate(
            system="all",
            answered=self.answered + other.answered,
            left=self.left + other.left,
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            known_usd=self.known_usd + other.known_usd,
            is_whole=self.is_whole and other.is_whole,
            seconds=self.seconds + other.seconds,
        )

    @property
    def cost_usd(self) -> Expected | None:
        """Cost in US dollars; None if a part is unknown."""
        return self.known_usd if self.is_whole else None


@dataclass(frozen=True, kw_only=True)
class RunEstimate:
    """Estimate of the rest of a run, and the cost of the estimate."""

    systems: tuple[SystemEstimate, ...]
    """Estimates in the experiment's order of systems."""
    total: SystemEstimate
    rate_limit_s: float
    """Seconds that the limits per minute require at least, at any concurrency; 0 without limits."""
    pilot_asked: int
    """Number of questions asked for this estimate, over all systems."""
    pilot_cost: Cost
    cached_share: float
    """Share in [0, 1] of the calls behind the estimate that the cache answered; they count with their recorded cost."""

    def to_document(self) -> dict[str, object]:
        """Return the estimate as plain data for ``json.dumps``."""
        return {
            "systems": [_document(system) for system in self.systems],
            "total": _document(self.total),
            "rate_limit_s": self.rate_limit_s,
            "pilot": {"asked": self.pilot_asked, **self.pilot_cost.to_document()},
            "cached_share": self.cached_share,
        }


def estimate_run(
    experiment: Experiment,
    out: Path,
    *,
    pilot: int = PILOT,
    options: RunOptions | None = None,
    settings: Settings | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_setup: Callable[[int, int, str], None] | None = None,
) -> RunEstimate:
    """Ask some questions of the experiment, and estimate the rest.

    The pilot questions are drawn by the experiment's seed and become ordinary rows of ``out``, which later estimates
    and the run itself keep. Existing rows, except failed ones, count for the estimate too.

    ::

        estimate = estimate_run(load_experiment(Path("experiment.yaml")), Path("runs/a"), pilot=10)

    Args:
        experiment: The whole experiment.
        out: Its run directory.
        pilot: Number of questions to ask each system, plus the earlier turns of their paths; 0 uses existing rows only.
        options: As for ``run_experiment``.
        settings: As for ``run_experiment``.
        on_progress: As for ``run_experiment``.
        on_setup: As for ``run_experiment``.

    Raises:
        SettingsError: A system has no answer to estimate from.
        UserError: A wrong data set or setting, or a directory that holds another run or is in use.
    """
    options = replace(options or RunOptions(), pilot=pilot)
    settings = settings or (options.again.settings if options.again else load_settings())
    settings, store = with_experiment(settings, experiment), RunStore(out)
    before = len(store.read_attempts())
    run_experiment(experiment, out, options=options, settings=settings, on_progress=on_progress, on_setup=on_setup)
    prices, new, rows = load_prices(settings.home), store.read_attempts()[before:], store.read_rows()
    questions = choose_questions(dataset_of(experiment), experiment).questions
    left = Counter(job.system for job in plan_jobs(experiment, questions, rows))
    wanted = {question.id for question in questions}
    answered = [row for row in rows if row.question_id in wanted and row.status != "failed" and row.paid is not None]
    used = {system: [row for row in answered if row.system == system] for system in experiment.systems}
    at_once = max(1, min(experiment.concurrency, left.total()))
    systems = tuple(estimate_system(name, used[name], left[name], at_once, prices) for name in experiment.systems)
    return RunEstimate(
        systems=systems,
        total=sum(systems[1:], start=replace(systems[0], system="all")),
        rate_limit_s=rate_limit_s(used, left, settings),
        pilot_asked=len(new),
        pilot_cost=sum((cost_of_row(row, prices) for row in new), FREE),
        cached_share=_cached_share(row for rows in used.values() for row in rows),
    )


def estimate_system(system: str, rows: Sequence[RunRow], left: int, at_once: int, prices: Prices) -> SystemEstimate:
    """Estimate ``left`` further questions to a system, each with the average usage of ``rows``.

    The wall time follows Little's law: with ``at_once`` questions in flight, one finishes every mean time / at_once
    seconds. A question's time includes waiting for model calls of others.

    Raises:
        SettingsError: ``rows`` is empty.
    """
    if not rows:
        raise SettingsError(f"There is no answer of {system} to estimate from. Give --pilot N with N of 1 or more.")
    costs = [uncached_cost_of_row(row, prices) for row in rows]
    return SystemEstimate(
        system=system,
        answered=len(rows),
        left=left,
        calls=_expected([sum(usage.calls for usage in row.uncached_chat_usage) for row in rows], left),
        tokens=_expected([sum(usage.tokens for usage in row.uncached_chat_usage) for row in rows], left),
        known_usd=_expected([cost.known_usd for cost in costs], left),
        is_whole=all(cost.is_whole for cost in costs),
        seconds=_expected([row.seconds_uncached / at_once for row in rows], left),
    )


def rate_limit_s(rows: Mapping[str, Sequence[RunRow]], left: Mapping[str, int], settings: Settings) -> float:
    """Compute the seconds that ``left`` questions need at least under the limits per minute, for the slowest model.

    A pilot is too short to reach such a limit, so its own times do not show it.
    """
    calls: defaultdict[str, float] = defaultdict(float)
    tokens: defaultdict[str, float] = defaultdict(float)
    for system, answered in rows.items():
        for usage in (usage for row in answered for usage in row.uncached_chat_usage):
            if not usage.model.startswith(LOCAL):
                share = left[system] / len(answered)
                calls[usage.model] += usage.calls * share
                tokens[usage.model] += usage.tokens * share
    limits = ((calls, settings.requests_per_minute), (tokens, settings.tokens_per_minute))
    return max((MINUTE_S * most / limit for used, limit in limits if limit for most in used.values()), default=0.0)


def _expected(values: Sequence[float], left: int) -> Expected:
    """Extrapolate to ``left`` questions by Student's t; the bootstrap of so few is too narrow.

    The interval is one of prediction: it adds the variance of their own mean.
    """
    value = statistics.fmean(values) * left
    if len(values) < 2:
        return Expected(value=value, low=None, high=None)
    quantile = float(stats.t.ppf(1 - ALPHA / 2, df=len(values) - 1))
    half = quantile * statistics.stdev(values) * math.sqrt(left * (1 + left / len(values)))
    return Expected(value=value, low=max(0.0, value - half), high=value + half)


def _cached_share(rows: Iterable[RunRow]) -> float:
    answered = [*rows]
    calls, cached = sum(row.paid_llm_calls for row in answered), sum(row.cached_llm_calls for row in answered)
    return cached / (calls + cached) if calls + cached else 0.0


def _document(system: SystemEstimate) -> dict[str, object]:
    cost = system.cost_usd
    return {**asdict(system), "cost_usd": None if cost is None else asdict(cost)}
