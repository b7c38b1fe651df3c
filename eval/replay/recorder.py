"""Records searches exhaustively: every chunk asks on, whatever its verdict, so that any policy can be replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from langchain_core.documents import Document

from ...graphs.threads.context import RagContext
from ...modules.background_loop import async_twin, blocking
from ...modules.calls.usage import CallBudget, CallMeter, total_usage
from ...modules.errors import BudgetSpent, ModelCallError
from ...modules.judge.contract import SetVerdict, checked_set_verdict, checked_verdict, judges_sets
from ...modules.judge.sub_questions import ModelWriter
from ...modules.retriever.callbacks import search_heard
from ..datasets.questions import Dataset, EvalQuestion
from .recording import Hits, RecordedJudgement, RecordedQuestion, Recording
from .simulated import recorded_query


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


@blocking
async def record(
    dataset: Dataset,
    recording: Recording,
    context: RagContext,
    *,
    depth: int = 1,
    width: int = 1,
    max_llm_calls: int = 300,
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
        concurrency: Questions at once.
        on_progress: Called with (questions done, questions in all).

    Raises:
        UserError: An error that every question would meet, such as a rejected key.
    """
    recorder = _Recorder(recording, context, depth, width, dataset.key_field)
    slots, done = asyncio.Semaphore(concurrency), 0
    cut_off: list[str] = []

    async def one(question: EvalQuestion) -> int:
        nonlocal done
        async with slots:
            meter = CallMeter(node="record", budget=CallBudget(limit=max_llm_calls))
            try:
                await recorder.explore(question, meter)
            except BudgetSpent:
                cut_off.append(question.id)
        done += 1
        if on_progress is not None:
            on_progress(done, len(dataset.questions))
        return total_usage(meter.records)["llm_calls"]

    calls = await asyncio.gather(*(one(each) for each in dataset.questions))
    return Coverage(
        questions=len(dataset.questions), queries=recording.queries, calls=sum(calls), cut_off=tuple(sorted(cut_off))
    )


arecord = async_twin(record)


@dataclass(frozen=True)
class _Recorder:
    recording: Recording
    context: RagContext
    depth: int
    width: int
    key_field: str

    async def explore(self, question: EvalQuestion, meter: CallMeter) -> None:
        """Record a question, level by level."""
        self.recording.add_question(
            RecordedQuestion(
                id=question.id,
                question=question.question,
                gold=frozenset(question.supporting),
                answers=question.answers,
                answers_known=question.answers_known,
                lang=question.lang,
            )
        )
        level, seen = [question.question], {question.question}
        for depth in range(self.depth + 1):
            below: list[str] = []
            for query in level:
                judgement = await self._judgement(query, meter, expand=depth < self.depth)
                asked = (each for questions in judgement.questions.values() for each in questions)
                below += (each for each in dict.fromkeys(asked) if each not in seen)
                seen.update(below)
            level = below

    async def _judgement(self, query: str, meter: CallMeter, *, expand: bool) -> RecordedJudgement:
        known = self.recording.judgement(query)
        if known is not None and (known.questions or not expand):
            return known
        before = len(meter.records)
        hits = await self.recording.search(query, lambda asked: self._searched(asked, meter))
        given = await self._judged(query, hits, meter, expand=expand)
        assert self.context.judge is not None
        made = meter.records[before:]
        judged = recorded_query(self.context.judge, query, hits, given, self.key_field, made=made)
        used = total_usage(made)
        judgement = RecordedJudgement(
            query=query,
            judged=judged,
            questions={
                _id_of(chunk): await self._questions(query, chunk, verdict.next_query, meter)
                for (chunk, _), verdict in zip(hits, given.verdicts, strict=True)
            }
            if expand
            else {},
            calls=used["llm_calls"],
            tokens=used["prompt_tokens"] + used["completion_tokens"],
        )
        self.recording.add_judgement(judgement)
        return judgement

    async def _searched(self, query: str, meter: CallMeter) -> Hits:
        assert self.context.retriever is not None
        return await search_heard(self.context.retriever, query, meter)

    async def _judged(self, query: str, hits: Hits, meter: CallMeter, *, expand: bool) -> SetVerdict:
        judge = self.context.judge
        assert judge is not None
        chunks = [chunk for chunk, _ in hits]
        if not chunks:
            return SetVerdict(verdicts=())
        if judges_sets(judge):
            given = await judge.judge_set(query, chunks, meter=meter, expand=expand)
            return checked_set_verdict(given, len(chunks))
        verdicts = await asyncio.gather(
            *(judge.judge(query, each, meter=replace(meter, chunk_id=_id_of(each)), expand=expand) for each in chunks)
        )
        return SetVerdict(verdicts=tuple(map(checked_verdict, verdicts)))

    async def _questions(self, query: str, chunk: Document, first: str, meter: CallMeter) -> tuple[str, ...]:
        """Return the questions of a chunk's tries, the judge's own first; fewer where no other can be written."""
        writer = self.context.writer or ModelWriter(self.context.reader, prompts=self.context.prompts)
        questions = [first] if first else []
        while len(questions) < self.width:
            try:
                own = replace(meter, chunk_id=_id_of(chunk))
                questions.append(await writer.write(query, chunk, questions, meter=own))
            except ModelCallError:
                break
        return tuple(questions)


def _id_of(chunk: Document) -> str:
    return str(chunk.metadata["chunk_id"])
