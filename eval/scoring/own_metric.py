"""Metrics of one's own: by import path, plug-in or object, checked as they are used."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ...modules.calls.messages import version_of
from ...modules.calls.usage import CallMeter
from ...modules.digests import canonical_json
from ...modules.errors import SettingsError
from ...modules.llm.contract import ChatLLM
from ...modules.parts import (
    Part,
    accepted_arguments,
    check_name,
    guard_exit,
    instantiate,
    needs_making,
    part_of,
    register_object,
)
from ...modules.settings import Settings
from ..datasets.questions import EvalQuestion
from ..rows.store import RunRow
from ..rows.trees import TreeStore
from .llm_correctness import LLM_CORRECTNESS, LlmCorrectness
from .sample import Metric, MetricSample, sample_of
from .scores import Score, ScoreStore

BUILT_IN: Mapping[str, type] = {LLM_CORRECTNESS: LlmCorrectness}
"""Metrics of judgetree's own that need a model, by name."""
_USUAL_RANGE = (0.0, 1.0)
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class MetricScorer:
    """Everything besides the row that decides a score. Scores of different scorers are never mixed."""

    metric: str
    """``module:name``, a plug-in's name, or that of a built-in one."""
    source: str
    """First digits of the SHA-256 of the file that defines it; see ``parts.Part``."""
    version: str
    """What the metric says of itself, and a digest of the fields of an object; ``""`` if nothing."""
    lowest: float
    highest: float
    model: str = ""
    """The model that it asks; ``""`` without one."""
    endpoint: str = ""
    """Endpoint of the model (host, port and path, or a name)."""
    higher_is_better: bool = True
    """Whether higher scores are better; stated by the metric's ``higher_is_better``."""

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.metric


MetricScore = Score[MetricScorer]
"""A score of a metric of one's own."""


class MetricStore(ScoreStore[MetricScorer]):
    """The scores of one run directory by metrics of one's own: ``scores.jsonl``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "scores.jsonl", MetricScorer)


def metric_part(given: object) -> Part:
    """Return the metric that is given: by name, or itself.

    Raises:
        SettingsError: There is no such metric, or it cannot be imported.
    """
    if isinstance(given, str):
        check_name("metric", given, BUILT_IN)
        if given in BUILT_IN:
            return Part(name=given, value=BUILT_IN[given], source="")
    else:
        given = register_object(given)
    return part_of("metric", given)


def wants_model(part: Part) -> bool:
    """Whether the metric is a class that is made with a chat model."""
    return inspect.isclass(part.value) and "llm" in (accepted_arguments(part) or ())


class OwnMetric:
    """A metric of one's own as the rows of a run are scored with it."""

    def __init__(self, part: Part, trees: TreeStore, *, llm: ChatLLM | None, endpoint: str, settings: Settings) -> None:
        """``llm``: what a class that wants one is made with, and ``endpoint`` where it is.

        Raises:
            SettingsError: The metric cannot be made or called, or its ``range`` is none.
        """
        value = instantiate(part, llm=llm, settings=settings) if inspect.isclass(part.value) else part.value
        if not callable(value):
            raise SettingsError(f"The metric {part.name!r} is {value!r:.100}. Name a function that takes a sample.")
        self._part = part
        self._metric = cast(Metric, value)
        self._takes_meter = _takes_meter(value)
        self._needs_answers = isinstance(value, LlmCorrectness)
        self._trees = trees
        self._reading = asyncio.Lock()  # TreeStore.read updates its index and is not thread-safe
        lowest, highest = range_of(part.name, value)
        self.scorer = MetricScorer(
            metric=part.name,
            source=part.source,
            version=_version_of(part, value),
            lowest=lowest,
            highest=highest,
            model=llm.model if llm is not None else "",
            endpoint=endpoint,
            higher_is_better=_is_higher_better(part.name, value),
        )

    def why_not(self, row: RunRow, question: EvalQuestion) -> str | None:
        """Return None: a metric of one's own applies to every row."""
        return None

    async def value_of(self, row: RunRow, question: EvalQuestion, meter: CallMeter) -> float | None:
        """Score a row; a plain function runs in a thread.

        A failed question has the worst score and is not given to the metric. It has none where the metric needs gold
        answers and the data set knows none.

        Raises:
            ValueError: The metric returned no number in its range, and not None.
        """
        if row.status == "failed":
            worst = self.scorer.lowest if self.scorer.higher_is_better else self.scorer.highest
            return worst if question.answers_known or not self._needs_answers else None
        async with self._reading:
            tree = await asyncio.to_thread(self._trees.read, row.thread_id)
        return self.checked(await self.called(sample_of(row, question, tree), meter))

    async def called(self, sample: MetricSample, meter: CallMeter) -> object:
        """Return what the metric returns for a sample."""
        meters = {"meter": meter} if self._takes_meter else {}

        def call() -> object:
            return self._metric(sample, **meters)

        is_coroutine = inspect.iscoroutinefunction(self._metric) or inspect.iscoroutinefunction(
            getattr(self._metric, "__call__", None)  # noqa: B004 - an object with an asynchronous __call__
        )
        with guard_exit(self._part.name):
            given = call() if is_coroutine else await asyncio.to_thread(call)
            return await given if inspect.isawaitable(given) else given

    def checked(self, value: object) -> float | None:
        """Return a score as a float; numpy's numbers and booleans count as numbers.

        Raises:
            ValueError: It is neither None nor a number in the range of the metric.
        """
        if value is None:
            return None
        lowest, highest = self.scorer.lowest, self.scorer.highest
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if isinstance(value, str) or not lowest - _ROUNDING <= number <= highest + _ROUNDING:
            raise ValueError(
                f"{self._part.name!r} gave {value!r:.100}, which is no number from {lowest:g} to {highest:g}, its "
                "range, and not None"
            )
        return min(max(number, lowest), highest)


def range_of(name: str, metric: object) -> tuple[float, float]:
    """Return the range that a metric states, (0, 1) if it states none.

    Raises:
        SettingsError: Its ``range`` is no pair of finite numbers, the lower one first.
    """
    stated = getattr(metric, "range", _USUAL_RANGE)
    try:
        lowest, highest = (float(bound) for bound in stated)
    except (TypeError, ValueError):
        lowest = highest = math.nan
    if not (math.isfinite(lowest) and math.isfinite(highest) and lowest < highest):
        raise SettingsError(
            f"The range of the metric {name!r} is {stated!r:.100}. Give the lowest and the highest score, as in (0, 5)."
        )
    return lowest, highest


def _is_higher_better(name: str, metric: object) -> bool:
    stated = getattr(metric, "higher_is_better", True)
    if not isinstance(stated, bool):
        raise SettingsError(f"higher_is_better of the metric {name!r} is {stated!r:.100}. Give True or False.")
    return stated


def _version_of(part: Part, value: object) -> str:
    """Return the version that a metric states, and a digest of what an object that was given holds."""
    held = {} if needs_making(part) else getattr(value, "__dict__", {})
    fields = f"fields {version_of(canonical_json(held))}" if held else ""
    return ", ".join(filter(None, (str(getattr(value, "version", "")), fields)))


def _takes_meter(metric: object) -> bool:
    try:
        return "meter" in inspect.signature(metric).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
