"""Scoring of the rows of a run, each score stored as soon as it is computed, within limits on calls and money."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ...modules.calls.journal import ACCOUNT
from ...modules.calls.prices import FREE, Cost
from ...modules.calls.usage import CallMeter, total_usage
from ...modules.errors import JudgetreeError, LoadingError, RunLimitReached, UserError, ungrouped
from ...modules.llm.json_reply import ReplyProblem
from ..datasets.questions import EvalQuestion
from ..rows.store import RunRow
from ..runs.limits import Spending
from .models import ScoringOptions
from .scores import NamedScorer, Score, ScorerT, ScoreStore, finished, row_key, work_of

logger = logging.getLogger(__name__)

ScorerT_co = TypeVar("ScorerT_co", bound=NamedScorer, covariant=True)
"""The scorer of a method, which only reads it."""


class Method(Protocol[ScorerT_co]):
    """Protocol of one metric as the rows of a run are scored with it."""

    @property
    def scorer(self) -> ScorerT_co:
        """What scores, for the record beside the scores."""
        ...

    def why_not(self, row: RunRow, question: EvalQuestion) -> str | None:
        """Return why the metric does not apply to a row; None if it does."""
        ...

    async def value_of(self, row: RunRow, question: EvalQuestion, meter: CallMeter) -> float | None:
        """Score a row; None if the metric has no score for it. An error counts as a failed sample."""
        ...


@dataclass(frozen=True, kw_only=True)
class Sample(Generic[ScorerT]):
    """One row to be scored with one metric."""

    method: Method[ScorerT]
    row: RunRow
    question: EvalQuestion


@dataclass(frozen=True, kw_only=True)
class ScoringProgress:
    """Progress of the scoring, in samples."""

    done: int
    total: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class ScoringSummary:
    """Summary of one call. A sample is one row scored with one metric."""

    scored: int
    """Samples scored by this call, failed ones included."""
    failed: int
    """Failed samples among ``scored``."""
    failure: str
    """Why the first of them failed; ``""`` if none did."""
    kept: int
    """Samples scored by earlier calls."""
    not_applicable: int
    """Samples without a defined score."""
    calls: int
    """Chat calls that this call paid for."""
    cached_calls: int
    """Chat calls answered by the cache."""
    tokens: int
    """Prompt and completion tokens of ``calls``."""
    cost: Cost = FREE
    """Cost of ``calls``."""
    stopped_by: str = ""
    """The limit that ended it, as "max_calls=100"; ``""`` if all samples are scored."""


@dataclass(eq=False, kw_only=True)
class RunScorer(Generic[ScorerT]):
    """Scores samples, several at once. Use it on judgetree's background loop."""

    store: ScoreStore[ScorerT]
    options: ScoringOptions
    spending: Spending
    on_progress: Callable[[ScoringProgress], None] | None

    def __post_init__(self) -> None:
        self._scores: list[Score[ScorerT]] = []
        self._total = self._failed = 0

    async def run(self, samples: Sequence[Sample[ScorerT]]) -> ScoringSummary:
        """Score the samples that apply and that the same scorer has not scored yet.

        Raises:
            UserError: An error that would fail every other sample too.
        """
        self.spending.note_in(self.store.payments_for(each.method.scorer for each in samples))
        applicable = [each for each in samples if each.method.why_not(each.row, each.question) is None]
        done = finished(self.store.read(), retry_failed=self.options.retry_failed)
        due = [each for each in applicable if (row_key(each.row), each.method.scorer) not in done]
        self._total = len(due)
        self._report_progress()
        await self._work_through(iter(due))
        return ScoringSummary(
            scored=len(self._scores),
            failed=self._failed,
            failure=next((score.problem for score in self._scores if score.problem), ""),
            kept=len(applicable) - len(due),
            not_applicable=len(samples) - len(applicable),
            calls=sum(score.calls for score in self._scores),
            cached_calls=sum(score.cached_calls for score in self._scores),
            tokens=sum(score.prompt_tokens + score.completion_tokens for score in self._scores),
            cost=self.spending.cost_now,
            stopped_by=self.spending.exhausted if len(self._scores) < self._total else "",
        )

    def _report_progress(self) -> None:
        if self.on_progress is not None:
            self.on_progress(ScoringProgress(done=len(self._scores), total=self._total, failed=self._failed))

    async def _work_through(self, samples: Iterator[Sample[ScorerT]]) -> None:
        async def worker() -> None:
            for sample in samples:
                try:
                    score = await self._score(sample)
                except RunLimitReached:
                    return
                self.store.append(score)
                self._scores.append(score)
                self._failed += bool(score.problem)
                self._report_progress()

        with ungrouped(UserError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.options.concurrency, self._total)):
                    group.create_task(worker())

    async def _score(self, sample: Sample[ScorerT]) -> Score[ScorerT]:
        started, scorer = time.perf_counter(), sample.method.scorer
        ACCOUNT.set(work_of(scorer))
        meter = CallMeter(node=f"score_{scorer.name}")
        value: float | None = None
        problem = ""
        try:
            value = await sample.method.value_of(sample.row, sample.question, meter)
        except RunLimitReached:
            raise
        except (JudgetreeError, ReplyProblem) as error:
            # Another error of the user would fail every other sample too.
            if isinstance(error, UserError) and not isinstance(error, LoadingError):
                raise
            problem = str(error)
        except Exception as error:
            # An error of a metric in one sample must not end a long scoring run.
            logger.exception("%s of question %s by %s", scorer.name, sample.question.id, sample.row.system)
            problem = f"{type(error).__name__}: {error}"
        return _score_of(sample, meter, started, value, problem)


def _score_of(
    sample: Sample[ScorerT], meter: CallMeter, started: float, value: float | None, problem: str
) -> Score[ScorerT]:
    used, row = total_usage(meter.records), sample.row
    return Score(
        system=row.system,
        question_id=row.question_id,
        repeat=row.repeat,
        attempt=row.attempt,
        scorer=sample.method.scorer,
        value=value,
        problem=" ".join(problem.split())[:300],
        calls=used["llm_calls"],
        cached_calls=sum(record["kind"] == "chat" and record["cached"] for record in meter.records),
        prompt_tokens=used["prompt_tokens"],
        completion_tokens=used["completion_tokens"],
        embedded_texts=sum(record["kind"] == "embedding" for record in meter.records),
        seconds=round(time.perf_counter() - started, 3),
    )
