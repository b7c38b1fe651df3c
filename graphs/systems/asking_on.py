"""The node that asks the sub-questions of a chunk, each on a thread of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, get_args

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import StateSnapshot

from ...modules.calls.ledger import NO_SHARE, ExpectedSpend
from ...modules.calls.record import CallRecord, Spend
from ...modules.calls.usage import CallMeter
from ...modules.errors import BudgetSpent, LimitName, ModelCallError, UserError
from ...modules.judge.sub_questions import ModelWriter
from ..rag.thread_runs import run_sub_thread, saved_thread
from ..search.candidate import Candidate
from ..search.frontier import Decision, Frontier, Grant, Skipped
from ..search.sharing import Link
from ..threads.branches import Branches
from ..threads.candidates import as_ancestor, candidate_of, saved_grant
from ..threads.context import RunContext, emit, utc_now
from ..threads.eager import JudgeCalls
from ..threads.handed_on import handed_on
from ..threads.snapshots import is_finished
from ..threads.state import CallNewRagState, ChunkPatch, JsonScalar, Try

logger = logging.getLogger(__name__)

T = TypeVar("T")
Outcome = dict[str, JsonScalar]
"""Changes to the metadata of a chunk."""


async def call_new_rag(state: CallNewRagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Ask the sub-question of one chunk on its own thread, once it is granted, and others where the policy wants them.

    Writes the answers, the errors, or why nothing was asked, into the chunk.

    Raises:
        UserError: An error that the whole question would meet, such as a rejected key.
    """
    chunk, context = state["similar_chunk"], runtime.context
    chunk_id, thread_id = str(chunk.metadata["chunk_id"]), str(chunk.metadata["next_rag_thread_id"])
    candidate = candidate_of(chunk, context, calls=state["expected_calls"], share=_share_of(state["expected_share"]))
    meter = CallMeter(node="call_new_rag", chunk_id=chunk_id, budget=context.budget, calls=context.calls)
    changes: dict[str, JsonScalar | list[Try]]
    async with context.branches.entered():
        if context.frontier is None:
            changes = {**await _sub_answer(_Asked(candidate, thread_id), runtime, meter)}
        else:
            try:
                tries = _Tries(chunk, context.frontier, runtime, meter, state["old_query"])
                changes = await _closing(context, tries.asked(candidate, thread_id))
            finally:
                context.frontier.close_chunk(context.thread_id, chunk_id)
    outcome = {**changes, "next_rag_thread_id": thread_id}  # by which it was planned, asked or not
    emit(runtime, "sub_run_done", node="call_new_rag", chunk_id=chunk_id, **outcome)
    return {"similar_chunks": [ChunkPatch(chunk_id=chunk_id, changes=changes)], "usage": meter.records}


@dataclass(frozen=True)
class _Asked:
    """A sub-question that is asked."""

    candidate: Candidate
    thread_id: str
    grant: Grant | None = None
    """None where there are no rounds."""
    saved: StateSnapshot | None = None
    """Newest checkpoint of the thread, if an earlier run began it."""
    outcome: Outcome = field(default_factory=dict)

    def as_try(self) -> Try:
        """Return the try, for the metadata of the chunk."""
        assert self.grant is not None
        return Try(
            query=self.candidate.next_query,
            thread_id=self.thread_id,
            answer=str(self.outcome.get("sub_answer", "")),
            error=str(self.outcome.get("sub_run_error", "")),
            round=self.grant.round,
            priority=self.grant.priority,
        )


@dataclass(frozen=True)
class _Tries:
    """The tries of one chunk; a further one may begin once the search of the one before has ended."""

    chunk: Document
    frontier: Frontier
    runtime: Runtime[RunContext]
    meter: CallMeter
    query: str
    """Query that found the chunk."""

    async def asked(self, candidate: Candidate, thread_id: str) -> dict[str, JsonScalar | list[Try]]:
        """Ask on, from the first try or from those of an earlier run, and return the changes of the chunk."""
        granted = await self._begun(candidate, thread_id)
        if self.frontier.shared is not None:
            await self.frontier.shared.prepare(candidate.next_query, *(each.candidate.next_query for each in granted))
        for each in granted:
            assert each.grant is not None and each.saved is not None
            self.frontier.restore_grant(each.candidate, each.thread_id, each.grant, has_ended=is_finished(each.saved))
        for each in granted[1:]:
            await self._charge_question(each)
        if not granted:
            decision = await self._decision(candidate, thread_id)
            if isinstance(decision, Skipped):
                limit = decision.reason if decision.reason in get_args(LimitName) else ""
                return {"next_rag_thread_id": "", "skipped": decision.reason, "budget_spent": limit}
            if isinstance(decision, Link):
                return await self._linked(decision.thread_id)
            granted = [_Asked(candidate, thread_id, decision)]
        *earlier, last = granted
        found = await _all_of(*(self._only(each) for each in earlier), self._from(last))
        tries = [each for some in found for each in some]
        return {**tries[0].outcome, **({"tries": [each.as_try() for each in tries]} if len(tries) > 1 else {})}

    async def _linked(self, shared_thread_id: str) -> dict[str, JsonScalar | list[Try]]:
        """Wait for the sub-run that another chunk asks, and return its answer as that of this chunk."""
        assert self.frontier.shared is not None
        ending = await asyncio.shield(self.frontier.shared.end_of(shared_thread_id))
        return {"next_rag_thread_id": "", "shared_thread_id": shared_thread_id, **ending}

    async def _begun(self, candidate: Candidate, thread_id: str) -> list[_Asked]:
        """Return the tries that an earlier run began."""
        found: list[_Asked] = []
        while (saved := await saved_thread(thread_id, self.runtime.context)) and (grant := saved_grant(saved)):
            found.append(_Asked(candidate.asking(str(saved.values["query"])), thread_id, grant, saved))
            if not self.frontier.allows_retry:
                break
            candidate = found[-1].candidate.again()
            thread_id = self.frontier.thread_of_try(candidate)
        return found

    async def _from(self, asked: _Asked) -> list[_Asked]:
        """Ask one try, and beside it those after it, which the policy may want once its search has ended."""
        if not self.frontier.allows_retry:
            return await self._only(asked)
        this, further = await _all_of(self._only(asked), self._further(asked))
        return [*this, *further]

    async def _further(self, before: _Asked) -> list[_Asked]:
        try:
            async with self.runtime.context.budget.in_time():
                again = await self.frontier.next_attempt(before.candidate, before.thread_id)
        except BudgetSpent:
            return []
        if again is None:
            return []
        candidate, thread_id = again
        grant = await self._decision(candidate, thread_id)
        if not isinstance(grant, Grant):
            return []
        try:
            question = await self._question(candidate, thread_id)
            if self.frontier.shared is not None:
                await self.frontier.shared.prepare(question)
        except BaseException as error:
            self._give_up(thread_id, error)
            if isinstance(error, (UserError, GraphBubbleUp)) or not isinstance(error, Exception):
                raise
            is_ours = isinstance(error, (BudgetSpent, ModelCallError))
            if not is_ours:
                logger.exception("the question of another try of chunk %s failed", candidate.chunk_id)
            said = error if is_ours else f"{type(error).__name__}: {error}"
            return [_Asked(candidate, thread_id, grant, outcome={"sub_run_error": f"no sub-question: {said}"})]
        candidate = candidate.asking(question)
        self.frontier.update_candidate(thread_id, candidate)
        return await self._from(_Asked(candidate, thread_id, grant))

    async def _decision(self, candidate: Candidate, thread_id: str) -> Decision:
        """Wait for the round that decides on a candidate, or for the end of the time."""
        try:
            async with self.runtime.context.budget.in_time():
                return await self.frontier.request_grant(candidate, thread_id)
        except BudgetSpent as over:
            return Skipped(reason=over.limit)

    async def _question(self, candidate: Candidate, thread_id: str) -> str:
        """Write the question of a further try, by a call that its thread has reserved."""
        context = self.runtime.context
        meter = replace(self.meter, judged_in=thread_id)  # the records are shared
        writer = context.services.writer or ModelWriter(context.services.reader, prompts=context.services.prompts)
        async with context.budget.in_time():
            return await writer.write(self.query, self.chunk, candidate.tried, meter=meter)

    async def _charge_question(self, asked: _Asked) -> None:
        """Keep the record of the call that wrote the question of a try in an earlier run; the journal has its reply."""
        try:
            with suppress(BudgetSpent):
                await self._question(asked.candidate, asked.thread_id)
        except UserError as error:
            self._give_up(asked.thread_id, error)
            raise
        except Exception:
            logger.exception("the call that wrote the question of sub-run %s is not in its records", asked.thread_id)

    def _give_up(self, thread_id: str, error: BaseException) -> None:
        """Let no round wait for a granted try that is not asked.

        An error that all would meet, or one that ends the program, ends the search. So does an interrupt, until it is
        answered: a round without what the try finds then would choose otherwise, and grant the calls that it needs.
        """
        ends_program = not isinstance(error, (Exception, asyncio.CancelledError))
        if isinstance(error, (UserError, GraphBubbleUp)) or ends_program:
            self.frontier.fail(error)  # first, so that the end begins no round
        self.frontier.finish_run(thread_id)

    async def _only(self, asked: _Asked) -> list[_Asked]:
        shared = self.frontier.shared
        try:
            outcome = await _sub_answer(asked, self.runtime, self.meter)
        except BaseException as error:
            if shared is not None:
                shared.failed(asked.thread_id, error)
            self._give_up(asked.thread_id, error)
            raise
        self.frontier.finish_run(asked.thread_id)
        if shared is not None:
            shared.ended(asked.thread_id, outcome)
        assert asked.grant is not None
        return [replace(asked, outcome={**outcome, "round": asked.grant.round, "priority": asked.grant.priority})]


async def _closing(context: RunContext, work: Coroutine[Any, Any, T]) -> T:
    """Return what ``work`` returns; a cancelled root thread closes the frontier before its sub-runs are cancelled."""
    if context.depth or context.frontier is None:
        return await work
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        context.frontier.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


async def _all_of(*coroutines: Coroutine[Any, Any, T]) -> list[T]:
    """Run coroutines beside each other and return their results; all end before the first error is raised."""
    if len(coroutines) == 1:
        return [await coroutines[0]]
    tasks = [asyncio.create_task(each) for each in coroutines]
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


async def _sub_answer(asked: _Asked, runtime: Runtime[RunContext], meter: CallMeter) -> Outcome:
    """Run the thread of a sub-question; ``meter`` gets the calls of an answer that failed, which its state has not."""
    child = _context_of(asked, runtime)
    try:
        final = await run_sub_thread(asked.candidate.next_query, child, asked.saved)
    except (UserError, GraphBubbleUp):
        raise
    except (BudgetSpent, ModelCallError) as error:
        return {"sub_run_error": str(error), "budget_spent": error.limit if isinstance(error, BudgetSpent) else ""}
    except Exception as error:
        logger.exception("sub-run %s failed", asked.thread_id)
        return {"sub_run_error": f"{type(error).__name__}: {error}"}
    finally:
        meter.records += [_of_chunk(each, meter.chunk_id) for each in child.lost_calls]
    answer = handed_on(final["answer"], final["usage"])
    return {"sub_answer": answer, "sub_run_error": "", "budget_spent": ""}


def _of_chunk(record: CallRecord, chunk_id: str) -> CallRecord:
    return CallRecord(**{**record, "chunk_id": chunk_id})


def _share_of(expected: list[float]) -> ExpectedSpend:
    """Return the share that a state holds."""
    if not expected:
        return NO_SHARE
    tokens, usd, answer_tokens, answer_usd = expected
    return ExpectedSpend(Spend(tokens=round(tokens), usd=usd), Spend(tokens=round(answer_tokens), usd=answer_usd))


def _context_of(asked: _Asked, runtime: Runtime[RunContext]) -> RunContext:
    """Return the context of a sub-run."""
    parent = runtime.context
    return replace(
        parent,
        thread_id=asked.thread_id,
        parent_thread_id=parent.thread_id,
        depth=parent.depth + 1,
        path=asked.candidate.path,
        ancestors=(*parent.ancestors, as_ancestor(asked.candidate)),
        grant=asked.grant,
        branches=Branches(),
        lost_calls=[],
        judge_calls=JudgeCalls(),
        started_at=utc_now(),
        calls=parent.calls.of_thread(asked.thread_id) if parent.calls else None,
        emit_to=parent.emit_to or runtime.stream_writer,
    )
