"""What a session does with the search trees in its store: reads, forks and explains them."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from ...modules.background_loop import async_twin, blocking
from ...modules.calls.journal import forget_calls, thread_calls
from ...modules.calls.transcript_writer import ThreadTranscripts
from ...modules.calls.usage import total_usage
from ...modules.errors import SettingsError
from ...modules.llm.contract import ChatLLM
from ...modules.llm.langchain_chat import LangChainModel
from ...modules.locks.locks import Locks
from ...modules.settings import Settings
from ..config.given_keys import GivenKeys
from ..rag.graph import RagGraph
from ..rag.result import RagResult
from ..rag.running_work import RunningWork
from ..rag.search_tree import SearchTree
from ..rag.thread_runs import Lease, lock_of_thread, thread_runs
from ..threads.amounts import budget_of, count_paid
from ..threads.context import RagContext, RunContext
from ..threads.fingerprint import EXTRA_INPUTS, FORK_KEY, digest_of, fingerprint_of, sub_thread_id
from ..threads.mismatch import check_match
from ..tree.fork_record import Fork
from ..tree.places import Place, find_place
from .change import Change
from .explain import ExplainRun
from .explanation import AblationEffect, Explanation
from .fork import ForkRun
from .leaving_out import ExplainCost, cost_of, effect_of, leave_outs
from .threads import PathThread, read_path

_FORKED = ("judge",)
_EXPLAINED = ("judge", "naive")
_NO_LIMITS: Mapping[str, Any] = {
    "max_llm_calls": 10**9,
    "max_tree_tokens": None,
    "max_tree_cost_usd": None,
    "max_tree_seconds": None,
}
"""Model calls of an explanation, whose cost is said before."""


def _decides_an_answer(name: str) -> bool:
    """Whether a part of a fingerprint may change what a reader answers to given evidence."""
    return name.startswith("reader.") and not name.startswith("reader.evidence")


class TreeSession(ABC):
    """The verbs of a session for the search trees in its store."""

    graph: RagGraph
    settings: Settings
    _running: RunningWork
    _locks: Locks

    @abstractmethod
    async def open_services(self, overrides: GivenKeys | None = None) -> RagContext:
        """Return the services, with the overrides of one question."""

    @abstractmethod
    async def _calls_of(self, thread_id: str) -> set[str] | None:
        """Return the ids of the model calls in the thread's tree; None for a new thread."""

    @asynccontextmanager
    async def _alone(self, thread_id: str) -> AsyncIterator[Lease]:
        """Hold a root thread inside, so that no other run, in any process of the store, pays for the same calls.

        New threads too: others read their ids in the list of threads.
        """
        leased = thread_runs().held(self.graph.thread_key(thread_id))
        async with leased as lease, self._locks.hold(lock_of_thread(thread_id)):
            yield lease

    @blocking
    async def tree(self, thread_id: str) -> SearchTree:
        """Read the search tree of a thread.

        Raises:
            UnknownThread: The thread does not exist.
        """
        return await SearchTree.afrom_history(self.graph, thread_id)

    atree = async_twin(tree)

    @blocking
    async def fork(
        self,
        thread_id: str,
        node: str,
        *,
        score: int | None = None,
        next_query: str | None = None,
        drop: bool = False,
        topk: int | None = None,
        llm: str | ChatLLM | LangChainModel | None = None,
    ) -> RagResult:
        """Return the tree of a finished question with one change, as a new root thread; the old one stays as it is.

        Only the query of the node, what newly hangs below it, and the queries above it are answered again; everything
        else is linked and costs nothing. The session needs the settings of the old thread. The same fork has the same
        thread id: asked for again it costs nothing, after a failure or a kill only what was in flight.

        ::

            fork = session.fork(result.thread_id, "1#1", drop=True)
            print(fork.answer, fork.tree.saved)
            result.tree.diff(fork.tree)

        Args:
            thread_id: Root thread of a finished question, or of a fork.
            node: Number of a query, such as "2", or of a chunk, such as "2#1" (``tree.to_text(numbers=True)``).
            score: The verdict on the chunk: 0, 1 or 2.
            next_query: The sub-question of the chunk, whose score is or becomes 1.
            drop: Whether the chunk is taken out, as if it had not been found.
            topk: Chunks that the query, and new sub-questions below it, retrieve. Chunks found before keep their
                verdicts, except under a judge that takes all chunks at once.
            llm: Model that answers the query, and new sub-questions below it, as in ``RagSession.ask``.

        Raises:
            UnknownThread: The thread does not exist.
            ThreadMismatch: The old thread was run with other settings than the session's.
            SettingsError: There is no such node, the change does not fit it, or the old thread is not finished.
            ModelCallError: The reader failed; the same fork continues.
        """
        started, change = time.perf_counter(), Change(score=score, next_query=next_query, drop=drop, topk=topk, llm=llm)
        async with self._running.entered():
            tree, services = await self._origin(thread_id, _FORKED)
            place = find_place(tree.root, node)
            change.check(place, is_deepest=place.query.depth >= services.limits.max_rec_depth)
            change.check_links(services.limits.expansion)
            changed = await self.open_services(change.overrides)
            chunk_id = place.chunk.chunk_id if place.chunk else ""
            origin = Fork(
                thread_id=thread_id,
                node=place.name,
                depth=place.query.depth,
                chunk_id=chunk_id,
                changes=change.described(),
            )
            settings = digest_of(await self._fingerprint(tree, changed))
            fork_id = sub_thread_id(thread_id, place.name, origin.to_text(), settings)
            async with self._alone(fork_id):
                known = await self._calls_of(fork_id)
                if known is None:
                    known = await self._run_fork(tree, place, change, origin, (services, changed), fork_id)
            fork = await SearchTree.afrom_history(self.graph, fork_id)
            own = (record for query in fork.query_nodes() for record in query.paid)
            return RagResult(
                answer=fork.root.answer,
                status=fork.root.answer_status or "failed",
                thread_id=fork_id,
                system=self.graph.system,
                tree=fork,
                usage=fork.usage,
                usage_this_run=total_usage(record for record in own if record["call_id"] not in known),
                wall_s=time.perf_counter() - started,
            )

    afork = async_twin(fork)

    @blocking
    async def explain_cost(self, thread_id: str, *, max_depth: int | None = None) -> ExplainCost:
        """Return what ``explain`` costs at most; no model is called.

        Raises:
            UnknownThread: The thread does not exist.
        """
        tree = await SearchTree.afrom_history(self.graph, thread_id)
        return cost_of([*leave_outs(tree.root, max_depth=max_depth)])

    aexplain_cost = async_twin(explain_cost)

    @blocking
    async def explain(self, thread_id: str, *, max_depth: int | None = None, gold: Sequence[str] = ()) -> Explanation:
        """Ask the readers of a finished tree again, each time without one chunk or sub-question of the evidence.

        ``explain_cost`` says before what it costs at most: an answer for each chunk and each sub-question that a reader
        saw, and one for each query above it as far as its evidence changes. Nothing is searched or judged, so that the
        session needs the thread's settings of the reader alone. After a failure or a kill, only what was in flight is
        paid again.

        Args:
            thread_id: Root thread of a finished question of the system judge or naive.
            max_depth: Deepest level whose evidence is looked at, 0 for the root's alone; None takes all levels.
            gold: Right answers. With them, decisive is what makes the answer right, harmful what makes it wrong.
                Without them, decisive is what the answer changes without.

        Raises:
            UnknownThread: The thread does not exist.
            ThreadMismatch: The thread was answered by another reader than the session's.
            SettingsError: The thread is not finished, or of another system.
            ModelCallError: The reader failed; the same explanation continues.
        """
        async with self._running.entered():
            tree, services = await self._origin(thread_id, _EXPLAINED, decides=_decides_an_answer)
            wanted = [*leave_outs(tree.root, max_depth=max_depth)]
            threads: dict[str, PathThread] = {}
            for path in {each.place.query.thread_id: each.place.path for each in wanted}.values():
                read = await read_path(await self.graph.aopen(), path)
                threads |= zip((query.thread_id for query in path), read, strict=True)
            own_id = sub_thread_id(thread_id, "explain", "", digest_of(tree.fingerprint))
            unlimited = replace(services, limits=services.limits.changed(**_NO_LIMITS))
            async with self._begun(own_id, tree.fingerprint, unlimited) as context:
                done = await ExplainRun(context=context, threads=threads).run(wanted)
        left_out = (
            AblationEffect(
                node=each.place.name,
                thread_id=each.place.query.thread_id,
                chunk_id=each.chunk.chunk_id,
                part=each.part,
                answer=answer,
                effect=effect_of(tree.root.answer, answer, gold),
            )
            for each, (answer, _) in zip(wanted, done, strict=True)
        )
        usage = total_usage(record for _, records in done for record in records)
        return Explanation(tree=tree, left_out=tuple(left_out), gold=tuple(gold), usage=usage)

    aexplain = async_twin(explain)

    async def _run_fork(
        self,
        tree: SearchTree,
        place: Place,
        change: Change,
        origin: Fork,
        services: tuple[RagContext, RagContext],
        fork_id: str,
    ) -> set[str]:
        """Run a fork; returns the ids of the calls that it had made before."""
        fingerprint = {**tree.fingerprint, FORK_KEY: origin.to_text()}
        path = await read_path(await self.graph.aopen(), place.path)
        conversation_id = str(path[0].metadata.get("conversation_id") or "")
        transcripts = self.graph.transcripts_of(fork_id, owner=conversation_id or fork_id)
        async with self._begun(fork_id, fingerprint, services[0], transcripts=transcripts) as context:
            await ForkRun(
                context=replace(context, conversation_id=conversation_id),
                changed_services=services[1],
                path=path,
                chunk=place.chunk,
                change=change,
                fingerprint=fingerprint,
            ).run()
            return context.calls.known_ids if context.calls else set()

    @asynccontextmanager
    async def _begun(
        self,
        root: str,
        fingerprint: Mapping[str, str],
        services: RagContext,
        *,
        transcripts: ThreadTranscripts | None = None,
    ) -> AsyncIterator[RunContext]:
        """Give the context of a new root thread, whose journaled calls are forgotten once the work inside is done."""
        calls = await thread_calls(await self.graph.aopen_journal(), root, transcripts=transcripts)
        budget = await budget_of(services)
        count_paid(calls, budget)
        try:
            yield RunContext(
                services=services,
                budget=budget,
                graph=await self.graph.aopen(),
                fingerprint=digest_of(fingerprint),
                durability=self.settings.durability,
                thread_id=root,
                root_thread_id=root,
                calls=calls,
            )
        finally:
            if transcripts is not None:
                await transcripts.flush()
        await forget_calls(calls)

    async def _origin(
        self, thread_id: str, systems: Sequence[str], *, decides: Callable[[str], bool] = lambda name: True
    ) -> tuple[SearchTree, RagContext]:
        """Read a tree of these systems, and check that the session can answer a part again as before.

        ``decides`` says of a name in fingerprints whether its value has to be equal.
        """
        tree, services = await SearchTree.afrom_history(self.graph, thread_id), await self.open_services()
        if not tree.fingerprint:
            raise SettingsError(f"{thread_id!r} is no root thread; `judgetree threads` lists them.")
        if (system := tree.fingerprint.get("system")) not in systems:
            allowed = " and ".join(systems)
            raise SettingsError(f"This tree is of the system {system!r}. Allowed: trees of {allowed}.")
        here = await self._fingerprint(tree, services)
        then, now = ({key: each[key] for key in filter(decides, each)} for each in (tree.fingerprint, here))
        check_match(thread_id, then, now)
        return tree, services

    async def _fingerprint(self, tree: SearchTree, services: RagContext) -> dict[str, str]:
        """Return the fingerprint that the question of a tree has with these services."""
        stored = tree.fingerprint
        return await asyncio.to_thread(
            fingerprint_of,
            query=tree.root.query,
            system=self.graph.system,
            source=self.graph.source,
            services=services,
            repeat=int(stored.get("repeat", 0)),
            extra={name: stored[name] for name in EXTRA_INPUTS if name in stored},
        )
