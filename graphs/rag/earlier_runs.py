"""The outcomes that earlier runs of a thread have saved, restored for the run that continues it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from ..search.candidate import Ancestor, Candidate, Path
from ..search.findings import Findings
from ..search.frontier import Frontier, Grant
from ..search.sharing import Ending
from ..threads.candidates import as_ancestor, findings_of, saved_grant
from ..threads.context import RunContext
from ..threads.state import RagState
from ..tree.nodes import ChunkNode, QueryNode
from .thread_runs import saved_thread


async def restore_outcomes(context: RunContext, root: QueryNode) -> None:
    """Note the grants and links that are saved with their outcome; their nodes will not run again.

    Those whose outcome is not saved come again, and are noted then; until then a call is held for the answer of each
    started sub-run, so that no other takes it. It reads the newest checkpoint of each sub-run.
    """
    frontier = context.frontier
    if frontier is None:
        return
    for each in _known(_Place(root)):
        if isinstance(each, _Linked):
            if frontier.shared is not None:
                frontier.shared.linked(each.thread_id, each.shared_thread_id)
        elif isinstance(each, _Open):
            context.budget.restore(each.thread_id, calls=1)
        else:
            await _restore(each, frontier, context)


def open_sub_runs(root: QueryNode) -> frozenset[str]:
    """Return the threads of the sub-runs below a query that have started and run again.

    A sub-run whose chunk has an outcome does not, even if it was cut off, nor does any below it.
    """
    return frozenset(each.thread_id for each in _known(_Place(root)) if isinstance(each, _Open))


@dataclass(frozen=True)
class _Place:
    """A query of the tree, with the way to it."""

    node: QueryNode
    path: Path = ()
    ancestors: tuple[Ancestor, ...] = ()
    is_open: bool = True
    """Whether its thread runs again."""


@dataclass(frozen=True)
class _Linked:
    thread_id: str
    shared_thread_id: str


@dataclass(frozen=True)
class _Ended:
    """A sub-question whose outcome is saved in its chunk."""

    candidate: Candidate
    thread_id: str
    granted_in: tuple[int, int]
    ending: Ending


@dataclass(frozen=True)
class _Open:
    """A started sub-run that runs again."""

    thread_id: str


def _known(place: _Place) -> Iterator[_Ended | _Linked | _Open]:
    """Yield what is settled below a query, and what runs again, parents before children."""
    for chunk in place.node.chunks:
        if chunk.shared_thread_id:
            yield _Linked(place.node.thread_id, chunk.shared_thread_id)
        for candidate, below in _asked_by(chunk, place):
            ended = _ended(chunk, candidate, below.thread_id)
            is_open = place.is_open and ended is None
            if ended is not None:
                yield ended
            elif is_open and below.started_at is not None and below.status != "finished":
                yield _Open(below.thread_id)
            ancestors = (*place.ancestors, as_ancestor(candidate))
            yield from _known(_Place(below, candidate.path, ancestors, is_open))


def _asked_by(chunk: ChunkNode, place: _Place) -> Iterator[tuple[Candidate, QueryNode]]:
    tried: list[str] = []
    for attempt, below in enumerate(chunk.sub_runs, 1):
        yield (
            Candidate(
                thread_id=place.node.thread_id,
                chunk_id=chunk.chunk_id,
                next_query=below.query,
                path=(*place.path, chunk.chunk_id, below.query),
                p_needed=chunk.p_needed,
                is_calibrated=chunk.p_calibrated,
                retrieval_score=chunk.retrieval_score,
                rank=chunk.rank or 0,
                ancestors=place.ancestors,
                attempt=attempt,
                tried=tuple(tried),
            ),
            below,
        )
        tried.append(below.query)


def _ended(chunk: ChunkNode, candidate: Candidate, thread_id: str) -> _Ended | None:
    """Return a sub-question with its outcome; None where the chunk has none yet."""
    tries = {each["thread_id"]: each for each in chunk.tries}
    if found := tries.get(thread_id):
        ending: Ending = {"sub_answer": found["answer"], "sub_run_error": found["error"], "budget_spent": ""}
        return _Ended(candidate, thread_id, (found["round"], found["priority"]), ending)
    if chunk.granted_in is None:
        return None
    ending = {
        "sub_answer": chunk.sub_answer,
        "sub_run_error": chunk.sub_run_error,
        "budget_spent": chunk.metadata.get("budget_spent"),
    }
    return _Ended(candidate, thread_id, chunk.granted_in, ending)


async def _restore(each: _Ended, frontier: Frontier, context: RunContext) -> None:
    saved = await saved_thread(each.thread_id, context)
    round_, priority = each.granted_in
    grant = (saved and saved_grant(saved)) or Grant(round=round_, priority=priority, round_digests="")
    if frontier.shared is not None:
        await frontier.shared.prepare(each.candidate.next_query)
    findings = findings_of(cast(RagState, saved.values)) if saved else Findings()
    frontier.restore_finished(each.candidate, each.thread_id, grant, findings)
    if frontier.shared is not None:
        frontier.shared.ended(each.thread_id, each.ending)
