"""Prepares a run: checks its input against the thread, makes its context and counts the calls it has made."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from ...modules.calls.budget import TreeBudget
from ...modules.calls.journal import CallJournal, thread_calls
from ...modules.calls.transcript_writer import ThreadTranscripts
from ...modules.settings import Durability
from ..threads.amounts import SavedCall, budget_of, count_earlier, keep_root_answer
from ..threads.candidates import frontier_of
from ..threads.context import Compiled, RagContext, RunContext
from ..threads.fingerprint import digest_of, fingerprint_of
from ..threads.interrupts import answers_of, own_answers
from ..threads.mismatch import check_match
from ..threads.snapshots import NewThreadId, is_finished, is_new_thread
from ..threads.state import RagState
from .earlier_runs import open_sub_runs, restore_outcomes
from .nested import Outer, inner_config, inner_input, outer_answers, outer_of, with_context
from .recalled_answers import recall
from .run_start import Given, Options, Run, extra_inputs_of, start_of
from .search_tree import SearchTree
from .thread_runs import announce_saved


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A call of a graph."""

    given: Given
    config: RunnableConfig
    """With a thread id."""
    services: RagContext
    options: Options
    """Keyword arguments for LangGraph."""
    is_new: bool
    """Whether the thread was named just now, so that no state of it is saved yet."""
    streams: bool
    outer: Outer | None = None

    @classmethod
    def of(
        cls, given: Given, config: RunnableConfig, services: RagContext, options: Options, *, streams: bool
    ) -> RunRequest:
        """Read a call; inside the node of another graph, its thread is that of the node's task."""
        outer = outer_of(config)
        if outer is not None:
            config = inner_config(config, outer)
        configurable = config.get("configurable", {})
        thread_id = configurable.get("thread_id")
        return cls(
            given=given,
            config={**config, "configurable": {**configurable, "thread_id": str(thread_id or uuid.uuid4())}},
            services=services,
            options=options,
            is_new=not thread_id or isinstance(thread_id, NewThreadId),
            streams=streams,
            outer=outer,
        )

    @property
    def conversation_id(self) -> str:
        """Id of the conversation that asks; empty without one."""
        return str(self.config["configurable"].get("conversation_id", ""))

    @property
    def earlier_threads(self) -> Sequence[str]:
        """Root threads of the conversation's earlier searches, whose answers may be shared."""
        return tuple(self.config["configurable"].get("earlier_threads", ()))

    @property
    def thread_id(self) -> str:
        """Id of the thread."""
        return str(self.config["configurable"]["thread_id"])


async def prepare_run(
    asked: RunRequest,
    graph: Compiled,
    journal: CallJournal | None,
    transcripts: ThreadTranscripts | None,
    *,
    system: str,
    source: str,
    durability: Durability,
) -> Run:
    """Return the run that a call asks for.

    ``system`` and ``source`` are those of the fingerprint, ``durability`` holds where the call names none.

    Raises:
        UserError: The input does not fit the thread.
    """
    snapshot = await graph.aget_state(asked.config) if graph.checkpointer and not asked.is_new else None
    known = None if snapshot is None or is_new_thread(snapshot) else snapshot
    if asked.outer is not None:
        asked = replace(asked, given=inner_input(asked.given, graph))
    start = start_of(asked.given, asked.thread_id, known)
    fingerprint = await asyncio.to_thread(
        fingerprint_of,
        query=start["query"],
        system=system,
        source=source,
        services=asked.services,
        repeat=int(asked.config["configurable"].get("repeat", 0)),
        extra=extra_inputs_of(asked.given, start, known),
    )
    durability = asked.options.get("durability") or durability
    context = await _context_of(asked, graph, fingerprint, durability)
    calls = await thread_calls(
        journal, asked.thread_id, is_new=asked.is_new, transcripts=transcripts, run=context.fingerprint
    )
    context = replace(context, calls=calls)
    if known is None or not is_finished(known):
        keep_root_answer(start.get("reader_query") or start["query"], context)
    if context.frontier is not None and context.frontier.shared is not None:
        await context.frontier.shared.prepare(fingerprint["query"])
        await recall(context.frontier.shared, asked.earlier_threads, graph, fingerprint)
    if known is not None:
        check_match(asked.thread_id, known.values.get("fingerprint") or {}, fingerprint)
        context = await _continued(context, asked, known)
    elif calls is not None:  # an earlier run may have ended before its first checkpoint
        count_earlier(calls.known_replies, (), context.budget, failed=calls.known_failures)
    context.budget.reserve_answer(asked.thread_id)
    without_limit = cast(RunnableConfig, {k: v for k, v in asked.config.items() if k != "max_concurrency"})
    return Run(
        context=context,
        # A limit of LangGraph's would let branches that wait for a grant keep out those that the round waits for.
        config={**without_limit, "metadata": {**asked.config.get("metadata", {}), **context.metadata()}},
        options={**asked.options, "durability": durability if graph.checkpointer else None},
        start=cast(RagState, {**start, "fingerprint": fingerprint, "config": dict(asked.services.config)})
        if known is None
        else own_answers(known, context.answers),
        finished=cast(RagState, known.values) if known is not None and is_finished(known) else None,
        outer=asked.outer,
    )


async def _context_of(
    asked: RunRequest, graph: Compiled, fingerprint: Mapping[str, str], durability: Durability
) -> RunContext:
    budget = await budget_of(asked.services)
    digest = digest_of(fingerprint)
    return RunContext(
        services=asked.services,
        budget=budget,
        frontier=frontier_of(asked.services, budget, asked.thread_id, fingerprint["query"], digest),
        graph=graph,
        fingerprint=digest,
        durability=durability,
        thread_id=asked.thread_id,
        root_thread_id=asked.thread_id,
        conversation_id=asked.conversation_id,
        is_new=asked.is_new,
        stream_answer=asked.streams and "custom" in asked.options.get("stream_mode", ()),
    )


async def _continued(context: RunContext, asked: RunRequest, known: StateSnapshot) -> RunContext:
    """Return the context with the calls that a known thread has made, and the answers to its interrupts."""
    tree = await SearchTree.afrom_history(context.graph, asked.thread_id)
    running = open_sub_runs(tree.root)
    saved = (
        SavedCall(record, node.thread_id, node.thread_id in running)
        for node in tree.query_nodes()
        for record in node.paid
        if not (tree.fork and record["cached"])  # a fork has taken over its cached calls
    )
    calls = context.calls
    count_earlier(
        calls.known_replies if calls else (), saved, context.budget, failed=calls.known_failures if calls else ()
    )
    if not is_finished(known):
        await restore_outcomes(context, tree.root)
    announce_saved(known, context)
    if is_finished(known):
        return context
    if isinstance(asked.given, Command):
        return replace(context, answers=answers_of(asked.given, known, asked.thread_id))
    return replace(context, answers=outer_answers(asked.outer, known)) if asked.outer is not None else context


async def update_thread(
    graph: Compiled,
    config: RunnableConfig,
    values: Mapping[str, object] | None,
    as_node: str | None,
    services: RagContext,
) -> RunnableConfig:
    """Write values into a thread; its routes run with the thread's depth and the limits of ``services``."""
    snapshot = await graph.aget_state(config)
    thread_id = str(config["configurable"]["thread_id"])
    context = RunContext(
        services=services,
        budget=TreeBudget(limit=services.limits.max_llm_calls),
        graph=graph,
        fingerprint="",
        durability="sync",
        thread_id=thread_id,
        root_thread_id=thread_id,
        depth=cast(Mapping[str, int], snapshot.metadata or {}).get("depth", 0),
    )
    return await graph.aupdate_state(with_context(config, context), values, as_node)
