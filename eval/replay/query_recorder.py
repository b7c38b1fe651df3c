"""Records one query at a time: what it finds, how that is judged, and what each of its chunks asks."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from langchain_core.documents import Document

from ...graphs.systems.callbacks import search_with_callbacks
from ...graphs.systems.judging import judge_chunk, judge_chunks
from ...graphs.threads.context import RagContext
from ...modules.calls.usage import CallMeter
from ...modules.errors import BudgetSpent, ModelCallError, NoQuestion, UserError, ungrouped
from ...modules.judge.contract import Judge, SetVerdict, Verdict, about, judges_sets
from ...modules.judge.sub_questions import ModelWriter
from .recording import Hits, SearchRecording
from .recording_lines import RecordedJudgement
from .simulated import recorded_query
from .world import JudgedChunk, JudgedQuery

logger = logging.getLogger(__name__)
_KEPT = Verdict(status="pending")
"""In place of a verdict that an earlier judgement has."""


@dataclass
class QueryRecorder:
    """Searches and judges each distinct query once, however many questions and chunks ask it at the same time.

    Chunks that an earlier recorder left without a verdict or without further questions, since a call failed, are asked
    about again; what was judged stays.
    """

    recording: SearchRecording
    context: RagContext
    width: int
    """Tries of each chunk."""
    key_field: str
    problem: str = ""
    """Why the newest unknown verdict is unknown."""
    _turns: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _asked: set[str] = field(default_factory=set)

    async def judgement(self, query: str, meter: CallMeter, *, expand: bool) -> RecordedJudgement:
        """Return the judgement of a query; with ``expand`` each chunk has its questions.

        Raises:
            BudgetSpent: The budget of ``meter`` is spent; what was judged and written until then is recorded.
            UserError: An error that every query would meet, such as a rejected key.
        """
        async with self._turns[query]:
            known = self.recording.judgement(query)
            if known is not None and (known.is_expanded or not expand) and (known.is_whole or query in self._asked):
                return known
            expand = expand or (known is not None and known.is_expanded)
            asking = _Asking(self, query, meter, expand, known)
            judgement = await asking.judgement()
            self.recording.add_judgement(judgement)
            if asking.stopped_by is not None:
                raise asking.stopped_by
            self._asked.add(query)
            return judgement


@dataclass
class _Asking:
    """A query that is asked, or asked again for what its earlier judgement lacks."""

    recorder: QueryRecorder
    query: str
    meter: CallMeter
    expand: bool
    earlier: RecordedJudgement | None
    stopped_by: BudgetSpent | UserError | None = None
    """What ended the asking before everything was there."""

    def __post_init__(self) -> None:
        chunks = self.earlier.judged.chunks if self.earlier else ()
        # A 1 of the deepest level lacks its question, which judges may write in the call of the verdict.
        lacks_questions = self.expand and self.earlier is not None and not self.earlier.is_expanded
        self.kept = {
            each.chunk_id: each
            for each in chunks
            if each.verdict == "judged" and not (lacks_questions and each.score == 1)
        }

    async def judgement(self) -> RecordedJudgement:
        """Return the judgement, which lacks something where ``stopped_by`` is set or a call failed."""
        retriever = self.recorder.context.retriever
        assert retriever is not None
        hits = await self.recorder.recording.search(
            self.query, lambda query: search_with_callbacks(retriever, query, self.meter)
        )
        judged = await self._judged(hits)
        questions: dict[str, tuple[str, ...]] = {}
        unwritten: set[str] = set()
        for (chunk, _), each in zip(hits, judged.chunks, strict=True) if self.expand else ():
            questions[each.chunk_id], is_whole = await self._questions(chunk, each)
            unwritten |= set() if is_whole else {each.chunk_id}
        return RecordedJudgement(
            query=self.query,
            judged=judged,
            questions=questions,
            is_expanded=self.expand,
            unwritten=frozenset(unwritten),
        )

    async def _judged(self, hits: Hits) -> JudgedQuery:
        """Return the verdicts; those that an earlier judgement has stay, with their calls."""
        earlier, judge = self.earlier, self.recorder.context.judge
        assert judge is not None
        if len(self.kept) == len(hits):
            return earlier.judged if earlier else JudgedQuery(chunks=())
        before = len(self.meter.records)
        if judges_sets(judge):
            chunks = [chunk for chunk, _ in hits]
            given = await judge_chunks(judge, self.query, chunks, meter=self.meter, expand=self.expand)
        else:
            given = await self._one_by_one(judge, hits)
        given = replace(given, verdicts=tuple(map(_without_a_cut_off_one, given.verdicts)))
        for verdict in given.verdicts:
            if verdict.status == "unknown":
                self.recorder.problem = verdict.problem
            elif verdict.status == "cancelled":
                self.stopped_by = BudgetSpent(verdict.problem)
        made = self.meter.records[before:]
        judged = recorded_query(judge, self.query, hits, given, self.recorder.key_field, made=made)
        judged = replace(judged, chunks=tuple(self.kept.get(each.chunk_id, each) for each in judged.chunks))
        if earlier is None or earlier.judged.set_suffices is None:
            return judged
        return replace(judged, set_suffices=earlier.judged.set_suffices, p_suffices=earlier.judged.p_suffices)

    async def _one_by_one(self, judge: Judge, hits: Hits) -> SetVerdict:
        """Judge the chunks that have no verdict yet, all at once."""

        async def one(chunk: Document) -> Verdict:
            if _id_of(chunk) in self.kept:
                return _KEPT
            with about(chunk, self.meter) as own:
                return await judge_chunk(judge, self.query, chunk, meter=own, expand=self.expand)

        with ungrouped(UserError):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(chunk)) for chunk, _ in hits]
        return SetVerdict(verdicts=tuple(each.result() for each in tasks))

    async def _questions(self, chunk: Document, judged: JudgedChunk) -> tuple[tuple[str, ...], bool]:
        """Return the questions of a chunk's tries, the judge's own first, and whether all that can be are written."""
        known: tuple[str, ...] = ()
        is_known = False
        if self.earlier is not None:
            known = self.earlier.questions.get(judged.chunk_id, ())
            is_known = judged.chunk_id in self.earlier.questions and judged.chunk_id not in self.earlier.unwritten
        if judged.next_query and judged.chunk_id not in self.kept:
            known, is_known = (judged.next_query,), False
        questions = list(known)
        while not is_known and len(questions) < self.recorder.width:
            if self.stopped_by is not None:
                return tuple(questions), False
            try:
                questions.append(await self._written(chunk, questions))
            except NoQuestion:
                break
            except (BudgetSpent, UserError) as error:
                self.stopped_by = error
            except Exception as error:
                is_ours = isinstance(error, ModelCallError)
                logger.warning("a question of chunk %s is unwritten: %s", judged.chunk_id, error, exc_info=not is_ours)
                return tuple(questions), False
        return tuple(questions), True

    async def _written(self, chunk: Document, tried: Sequence[str]) -> str:
        context = self.recorder.context
        writer = context.writer or ModelWriter(context.reader, prompts=context.prompts)
        return await writer.write(self.query, chunk, tried, meter=replace(self.meter, chunk_id=_id_of(chunk)))


def _without_a_cut_off_one(verdict: Verdict) -> Verdict:
    """Return a verdict that misses its question since the budget is spent as one that is asked for again."""
    return replace(verdict, status="cancelled", score=None) if verdict.budget_spent else verdict


def _id_of(chunk: Document) -> str:
    return str(chunk.metadata["chunk_id"])
