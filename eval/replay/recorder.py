"""Records searches exhaustively: every chunk asks on, whatever its verdict, so that any policy can be replayed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...graphs.threads.context import RagContext
from ...modules.background_loop import async_twin, blocking
from ...modules.calls.budget import TreeBudget
from ...modules.calls.usage import CallMeter, total_usage
from ...modules.errors import BudgetSpent, JudgetreeError, ModelSetupError, UserError, ungrouped
from ...modules.judge.noisy import NoisyJudge, NoisySetJudge
from ..datasets.questions import Dataset, EvalQuestion
from ..runs.limits import SetupFailures
from .query_recorder import QueryRecorder
from .recording import SearchRecording
from .recording_lines import RecordedJudgement, RecordedQuestion

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What was recorded of a data set."""

    questions: int
    queries: int
    """Distinct queries."""
    calls: int
    """Model calls made now."""
    cut_off: tuple[str, ...]
    """Questions whose recording ended with their budget."""
    failed: tuple[str, ...] = ()
    """Questions that an error ended, or of which no verdict came; the same call asks them again."""
    failure: str = ""
    """Why the first of them failed; ``""`` without."""
    unknown: int = 0
    """Verdicts that are unknown since the judge failed; the same call asks for them again."""
    unwritten: int = 0
    """Chunks that miss further questions since a call failed; the same call asks for them again."""
    questions_read: Mapping[str, object] | None = None
    """What was read of a file of one's own questions (``QuestionsRead``); None for other data sets."""


@blocking
async def record(  # noqa: PLR0913 - a front door, where everything has a default that fits
    dataset: Dataset,
    recording: SearchRecording,
    context: RagContext,
    *,
    depth: int = 1,
    width: int = 1,
    max_llm_calls: int = 300,
    fail_after: float = 10,
    concurrency: int = 8,
    on_progress: Callable[[int, int], None] | None = None,
) -> Coverage:
    """Search and judge what any policy could ask of each question; what is recorded already costs nothing.

    Args:
        dataset: The questions.
        recording: Grows by what is found.
        context: Retriever, judge, and the model or writer that writes questions where the judge writes none.
        depth: Levels of sub-questions.
        width: Tries of each chunk.
        max_llm_calls: Most model calls of a question; what was recorded until then stays.
        fail_after: From 1, questions in a row, and below, a share of them, that find no usable endpoint and end it.
        concurrency: Questions at once.
        on_progress: Called with (questions done, questions in all).

    Raises:
        ModelSetupError: As many questions as ``fail_after`` says, or all, have no verdict.
        UserError: Another error that every question would meet, such as a call that is missing in replay mode.
    """
    for each in dataset.questions:
        recording.add_question(_recorded(each))
    queries = QueryRecorder(recording, context, width=width, key_field=dataset.key_field)
    work = _Recorder(recording, queries, depth, max_llm_calls, SetupFailures(fail_after, verb="recorded", kept=_KEPT))
    waiting = iter(dataset.questions)

    async def worker() -> None:
        for question in waiting:
            if work.failures.is_reached:
                return
            await work.record(question)
            if on_progress is not None:
                on_progress(work.done, len(dataset.questions))

    with ungrouped(UserError):
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(dataset.questions))):
                group.create_task(worker())
    work.failures.refuse()
    return Coverage(
        questions=len(dataset.questions),
        queries=recording.queries,
        calls=work.calls,
        cut_off=tuple(sorted(work.cut_off)),
        failed=tuple(sorted(work.failed)),
        failure=next(iter(work.failed.values()), ""),
        unknown=recording.unknown,
        unwritten=recording.unwritten,
    )


arecord = async_twin(record)
_KEPT = "What was recorded is kept."


def _recorded(question: EvalQuestion) -> RecordedQuestion:
    return RecordedQuestion(
        id=question.id,
        question=question.question,
        gold=frozenset(question.supporting),
        alternatives=question.alternatives,
        answers=question.answers,
        answers_known=question.answers_known,
        lang=question.lang,
        folds_letters=question.folds_letters,
    )


@dataclass
class _Verdicts:
    """Chunks of a question's queries, as far as they say whether the judge works."""

    judged: int = 0
    judged_now: int = 0
    unjudged: int = 0
    unjudged_at_first: int = 0
    """Those among them that were asked about for the first time."""

    def add(self, before: RecordedJudgement | None, after: RecordedJudgement) -> None:
        """Count a query."""
        known = before.judged_chunks if before and before.is_expanded >= after.is_expanded else 0
        missing = len(after.judged.chunks) - after.judged_chunks
        self.judged += after.judged_chunks
        self.judged_now += after.judged_chunks - known
        self.unjudged += missing
        self.unjudged_at_first += missing if before is None else 0

    @property
    def have_failed(self) -> bool:
        """Whether there is none, or none of those that were to be had now."""
        return bool(self.unjudged) and (not self.judged or (bool(self.unjudged_at_first) and not self.judged_now))


@dataclass
class _Recorder:
    recording: SearchRecording
    queries: QueryRecorder
    depth: int
    max_llm_calls: int
    failures: SetupFailures
    done: int = 0
    calls: int = 0
    cut_off: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Why questions failed, by id, in the order in which they did."""

    async def record(self, question: EvalQuestion) -> None:
        """Record a question; errors of this one alone are kept."""
        is_simulated = isinstance(self.queries.context.judge, NoisyJudge | NoisySetJudge)
        budget = None if is_simulated else TreeBudget(limit=self.max_llm_calls)  # simulated calls cost nothing
        meter = CallMeter(node="record", budget=budget)
        failure: str | None = None
        try:
            verdicts = await self._explore(question, meter)
            failure = self.queries.problem if verdicts.have_failed else None
            if failure is None:
                self.recording.mark(question.id, is_done=True)
        except BudgetSpent:
            self.recording.mark(question.id, is_done=False)
            self.cut_off.append(question.id)
        except Exception as error:
            if isinstance(error, UserError) and not isinstance(error, ModelSetupError):
                raise
            # An error of one question must not end a long recording.
            logger.exception("question %s could not be recorded", question.id)
            failure = str(error) if isinstance(error, JudgetreeError) else f"{type(error).__name__}: {error}"
        finally:
            self.calls += 0 if is_simulated else total_usage(meter.records)["llm_calls"]
        if failure is not None:
            self.failed[question.id] = failure
        self.failures.add(failure)
        self.done += 1

    async def _explore(self, question: EvalQuestion, meter: CallMeter) -> _Verdicts:
        """Record a question, level by level."""
        verdicts = _Verdicts()
        level, seen = [question.question], {question.question}
        for depth in range(self.depth + 1):
            below: list[str] = []
            for query in level:
                before = self.recording.judgement(query)
                judgement = await self.queries.judgement(query, meter, expand=depth < self.depth)
                if judgement is not before:
                    self.recording.mark(question.id, is_done=False)  # it may ask what is not recorded yet
                verdicts.add(before, judgement)
                asked = (each for questions in judgement.questions.values() for each in questions)
                below += (each for each in dict.fromkeys(asked) if each not in seen)
                seen.update(below)
            level = below
        return verdicts
