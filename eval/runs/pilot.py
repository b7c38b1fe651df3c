"""What is left of a run, estimated from the questions of it that have been answered: calls, tokens, money, time.

Needs scipy (extra ``eval``).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ...graphs.rag.result import SystemName
from ...modules.calls.prices import FREE, LOCAL, Cost, ModelUsage, Prices, load_prices
from ...modules.errors import SettingsError
from ...modules.llm.rate_limit import MINUTE_S
from ...modules.settings import Settings, load_settings
from ..datasets.registry import load_dataset
from ..metrics.intervals import mean_interval
from ..rows.store import RunRow, RunStore
from .batch_run import RunOptions, run_experiment, with_experiment
from .experiment import Experiment
from .jobs import choose_questions, plan_jobs
from .limits import cost_of_row
from .runner import Progress

PILOT = 10
"""Questions that are asked of each system."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A sum over the questions that are left, with its 95 % interval."""

    value: float
    low: float | None
    """None where a single answer says nothing on how much they vary."""
    high: float | None

    def __add__(self, other: Expected) -> Expected:
        """The bounds are added too, which makes the interval of a sum wider than it need be, never too narrow."""
        low = None if self.low is None or other.low is None else self.low + other.low
        high = None if self.high is None or other.high is None else self.high + other.high
        return Expected(value=self.value + other.value, low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class SystemEstimate:
    """What is left for one system. All is estimated as if nothing of it were in the model cache."""

    system: str
    answered: int
    """Questions that the estimate rests on; those that failed are not among them."""
    left: int
    """Questions that are still to be asked, repeats counted."""
    calls: Expected
    tokens: Expected
    """Of chat calls, prompts and completions."""
    known_usd: Expected
    is_whole: bool
    """Whether ``known_usd`` is all of the money, or only what has a price."""
    seconds: Expected
    """Wall time, if as many questions are under way at once as when these were answered."""

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
        """US dollars; None where a part is unknown."""
        return self.known_usd if self.is_whole else None


@dataclass(frozen=True, kw_only=True)
class RunEstimate:
    """What a run will still take, and what it took to know."""

    systems: tuple[SystemEstimate, ...]
    """In the experiment's order."""
    total: SystemEstimate
    rate_limit_s: float
    """Seconds that the limits a minute ask for at least, whatever the concurrency; 0 without limits."""
    pilot_asked: int
    """Questions that were asked for this estimate, those of each system counted."""
    pilot_cost: Cost
    cached_share: float
    """Share in [0, 1] of the calls behind the estimate that the cache answered; they count with what they once took."""

    def to_document(self) -> dict[str, object]:
        """Plain data that ``json.dumps`` takes; amounts are those of the questions that are left."""
        return {
            "systems": [_document(system) for system in self.systems],
            "total": _document(self.total),
            "rate_limit_s": self.rate_limit_s,
            "pilot": {
                "asked": self.pilot_asked,
                "cost_usd": self.pilot_cost.usd,
                "cost_known_usd": self.pilot_cost.known_usd,
            },
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
    """Ask some questions of the experiment, and estimate what the others will take.

    The questions are drawn by the experiment's seed and are ordinary rows of ``out``: asked once, never again, neither
    by a second estimate nor by the run that follows. Rows that are there already are used too, but for failed ones.

    Args:
        experiment: What the whole run is to ask.
        out: Its run directory.
        pilot: Questions to ask of each system, turns of its conversations with those before them; 0 asks none and goes
            by the rows that are there.
        options: See ``run_experiment``.
        settings: See ``run_experiment``.
        on_progress: See ``run_experiment``.
        on_setup: See ``run_experiment``.

    Raises:
        SettingsError: A system has no answer to go by.
        UserError: See ``run_experiment``.
    """
    options = replace(options or RunOptions(), pilot=pilot)
    settings = settings or (options.again.settings if options.again else load_settings())
    settings, store = with_experiment(settings, experiment), RunStore(out)
    before = len(store.read_attempts())
    run_experiment(experiment, out, options=options, settings=settings, on_progress=on_progress, on_setup=on_setup)
    prices, new, rows = load_prices(settings.home), store.read_attempts()[before:], store.read_rows()
    questions = choose_questions(load_dataset(experiment.dataset, split=experiment.split), experiment).questions
    left = Counter(job.system for job in plan_jobs(experiment, questions, rows))
    wanted = {question.id for question in questions}
    used = {
        system: [row for row in rows if row.system == system and row.question_id in wanted and _says_what_it_took(row)]
        for system in experiment.systems
    }
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
    """What ``left`` further questions to a system will take, each as much as one of ``rows`` on average.

    The wall time follows from Little's law: with ``at_once`` questions under way, one is done every mean time / at_once
    seconds. A question's time includes its waiting for the model calls of others.

    Raises:
        SettingsError: There are no rows.
    """
    if not rows:
        raise SettingsError(f"No answer of {system} to estimate by. Give --pilot N with N of 1 or more.")
    usages = [_uncached(row) for row in rows]
    costs = [prices.cost_of(usage) for usage in usages]
    return SystemEstimate(
        system=system,
        answered=len(rows),
        left=left,
        calls=_expected([sum(one.calls for one in _chat(usage)) for usage in usages], left),
        tokens=_expected([sum(_tokens(one) for one in _chat(usage)) for usage in usages], left),
        known_usd=_expected([cost.known_usd for cost in costs], left),
        is_whole=all(cost.is_whole for cost in costs),
        seconds=_expected([row.seconds_uncached / at_once for row in rows], left),
    )


def rate_limit_s(
    rows: Mapping[SystemName, Sequence[RunRow]], left: Mapping[SystemName, int], settings: Settings
) -> float:
    """Seconds that the questions ``left`` need at least under the settings' limits a minute, by the slowest model.

    A pilot is too short to meet such a limit, so that its own times do not tell.
    """
    calls: defaultdict[str, float] = defaultdict(float)
    tokens: defaultdict[str, float] = defaultdict(float)
    for system, answered in rows.items():
        for usage in (one for row in answered for one in _chat(_uncached(row)) if not one.model.startswith(LOCAL)):
            share = left[system] / len(answered)
            calls[usage.model] += usage.calls * share
            tokens[usage.model] += _tokens(usage) * share
    limits = ((calls, settings.requests_per_minute), (tokens, settings.tokens_per_minute))
    return max((MINUTE_S * most / limit for used, limit in limits if limit for most in used.values()), default=0.0)


def _expected(values: Sequence[float], left: int) -> Expected:
    """The bootstrap's interval of the mean, wider by as much as the questions that are left vary themselves.

    Their mean has a variance of its own, that of ``values`` by ``left``, beside that of the mean of ``values``.
    """
    mean = mean_interval(values, scale="amount")
    value = mean.mean * left
    if mean.low is None or mean.high is None:
        return Expected(value=value, low=None, high=None)
    wider = math.sqrt(1 + len(values) / left) if left else 1.0
    low, high = (value + (bound - mean.mean) * left * wider for bound in (mean.low, mean.high))
    return Expected(value=value, low=max(0.0, low), high=high)


def _says_what_it_took(row: RunRow) -> bool:
    return row.status != "failed" and row.paid is not None


def _uncached(row: RunRow) -> tuple[ModelUsage, ...]:
    return tuple(usage.as_if_uncached() for usage in row.paid or ())


def _chat(usages: Iterable[ModelUsage]) -> Iterator[ModelUsage]:
    return (usage for usage in usages if usage.kind == "chat")


def _tokens(usage: ModelUsage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


def _cached_share(rows: Iterable[RunRow]) -> float:
    usages = [usage for row in rows for usage in _chat(row.paid or ())]
    calls, cached = sum(usage.calls for usage in usages), sum(usage.cached_calls for usage in usages)
    return cached / (calls + cached) if calls + cached else 0.0


def _document(system: SystemEstimate) -> dict[str, object]:
    cost = system.cost_usd
    return {**asdict(system), "cost_usd": None if cost is None else asdict(cost)}
