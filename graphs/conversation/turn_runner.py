"""Asks the questions of one conversation: opens or resumes the turn, runs its graph, and emits its events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from ...modules.calls.budget import StopSignal
from ...modules.calls.journal import thread_calls
from ...modules.calls.record import CallRecord
from ...modules.calls.usage import total_usage
from ...modules.errors import (
    ConversationBusy,
    JudgetreeError,
    NoRunningQuestion,
    QuestionInterrupted,
    SettingsError,
    UserError,
)
from ...modules.memory.turns import OpenTurn, QaPair, rag_thread_of
from ..rag.search_tree import SearchTree
from ..rag.thread_runs import ThreadKey
from ..threads.interrupts import format_waiting, interrupts_in
from ..threads.snapshots import is_absent, is_finished
from . import branches
from .continuation import can_go_on
from .qa_log import log_turn
from .record import ConversationRecord
from .request import FIRST, Request
from .running_turns import running_turns
from .services import ConversationServices, OpenStores
from .started_turn import Outcome, StartedTurn, delete_delivered_thread
from .tree import read_search_tree
from .turn.budget import is_spent, open_budget
from .turn.context import ConversationOptions, TurnContext, turn_fingerprint
from .turn.events import ConversationEvent, ErrorEvent, Listener, SessionEvent, Stream, end_events
from .turn.history import chunks_of, load_history
from .turn.result import TurnResult
from .turn.saving import remember
from .turn.state import ConversationState, TurnState
from .turn.store import conversation_thread, turn_thread
from .turn_calls import calls_of_turn, calls_so_far
from .turn_tracing import traced

logger = logging.getLogger(__name__)


class TurnRunner:
    """Asks the questions of one conversation, one after the other; use it on judgetree's own loop."""

    def __init__(
        self, services: ConversationServices, record: ConversationRecord, options: ConversationOptions
    ) -> None:
        self._services = services
        self._options = options
        self._record = record
        self._name = record.name

    async def stream(self, request: Request) -> AsyncIterator[ConversationEvent]:
        """Yield the events of one question; closing the iterator early cancels the turn, which stays open."""
        events: asyncio.Queue[ConversationEvent | None] = asyncio.Queue()
        asking = asyncio.create_task(self.ask(request, events.put_nowait))
        asking.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await asking
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def ask(self, request: Request, listener: Listener | None) -> TurnResult:
        """Answer one question, see ``Conversation.ask``."""
        began = time.perf_counter()
        emit = listener or (lambda event: None)
        needs_sources = listener is not None or self._options.return_source_documents
        result: TurnResult | None = None
        try:
            request.check()
            self._services.session.open_sender()  # a missing extra leaves no open turn
            async with self._services.hold(self._name) as opened:
                started = await self._start(request, opened)
                emit(self._session_event(started))
                outcome = await self._answer(started, request, opened, listener)
                refs = outcome.saved["chunks"] if outcome.saved and needs_sources else []
                sources = await chunks_of(refs, self._services.rag)
                result = self._result(started, outcome, sources, time.perf_counter() - began)
                for event in end_events(result, sources, refs):
                    emit(event)
                if outcome.saved is not None:
                    await delete_delivered_thread(started, request.delivery, opened)
        except UserError as failure:
            if result is None:
                emit(ErrorEvent(message=str(failure)))
                raise
            logger.warning("the last thread of %r is deleted at the next question (%s)", self._name, failure)
        return result

    async def stop(self) -> None:
        """Stop the running question, see ``Conversation.stop``."""
        if running_turns().stop(self._key):
            return
        opened = await self._services.open()
        said = f"The conversation {self._name!r} answers no question that could be stopped."
        try:
            async with opened.locks.hold(self._name, wait=False):
                pass
        except ConversationBusy:
            said = (
                f"The conversation {self._name!r} is in use, and not by a question that this process answers: only the "
                "process that answers it can stop it."
            )
        raise NoRunningQuestion(said)

    @property
    def _key(self) -> ThreadKey:
        return self._services.rag.thread_key(conversation_thread(self._name))

    def _result(self, started: StartedTurn, outcome: Outcome, sources: Sequence[Document], wall_s: float) -> TurnResult:
        options, saved = self._options, outcome.saved
        return TurnResult(
            name=self._name,
            conversation_id=started.state["conversation_id"],
            answer=saved["answer"] if saved else "",
            status=saved["status"] if saved else "failed",
            turn=saved,
            answered_from=saved["answered_from"] if saved else "",
            standalone_query=outcome.standalone_query,
            tree=outcome.tree,
            usage=outcome.usage,
            turn_id=started.turn["turn_id"],
            branch=started.branch,
            resumed=started.resumed,
            wall_s=wall_s,
            error=outcome.error,
            calls=outcome.calls,
            output_key=options.output_key,
            source_documents=tuple(sources) if options.return_source_documents else None,
            generated_question=saved["standalone_query"] if saved and options.return_generated_question else None,
        )

    async def _start(self, request: Request, opened: OpenStores) -> StartedTurn:
        """Find the turn of the request, or save a new one as open before the first model call."""
        services, store = self._services, opened.store
        saved_state = await store.load(self._name)
        state = saved_state or await self._record.new()
        if (saved := await self._saved_turn(state, request, opened)) is not None:
            return StartedTurn(turn=saved, resumed=True, state=state, saved=saved)
        if not self._options.switch_collection:
            branches.check_collection(state, request.collection)
        parent = await self._parent(state, request.parent_turn_id)
        changed = request.overrides.described()
        fingerprint = turn_fingerprint(self._options, services.limits, services.session.prompts, changed)
        turn = branches.resumable(state, request, parent, fingerprint=fingerprint)
        root = rag_thread_of(state["conversation_id"], turn["turn_id"]) if turn else ""
        if turn is not None and await can_go_on(root, services, opened, self._options, request.overrides):
            started = StartedTurn(turn=turn, resumed=True, state=state)
            if not await self._is_spent(started, request, opened):
                return started
        turn, changes = branches.opened(state, request, parent, fingerprint=fingerprint)
        await services.open_models(self._options, request.overrides)  # a mistake leaves no open turn
        if saved_state is None:
            now_open = await store.begin({**state, **changes})
        else:
            now_open = await store.save(state, changes)
        await self._delete_leftovers(state, opened)
        return StartedTurn(turn=turn, resumed=False, state=now_open)

    async def _is_spent(self, started: StartedTurn, request: Request, opened: OpenStores) -> bool:
        """Return whether a turn has used its limits without an answer, so that its question begins anew."""
        services, _ = await self._services.open_models(self._options, request.overrides)
        calls = (await self._unfinished(started, opened, "")).calls
        return await is_spent(services, started.turn["query"], calls)

    async def _delete_leftovers(self, before: ConversationState, opened: OpenStores) -> None:
        """Delete the threads of an abandoned open turn, and the thread that a crash left of the last saved turn."""
        if abandoned := before["open_turn"]:
            root = rag_thread_of(before["conversation_id"], abandoned["turn_id"])
            await opened.store.delete_threads([turn_thread(root), *await opened.store.tree_threads(root)])
        last = before["chat_history"][-1]["turn_id"] if before["chat_history"] else ""
        if last and opened.finished_turns.get(before["conversation_id"]) != last:
            await opened.store.delete_threads([_thread_of(before, last)])

    async def _saved_turn(self, state: ConversationState, request: Request, opened: OpenStores) -> QaPair | None:
        """Return the saved turn that answers the request; None without one.

        It has the id of the request. Or it has the same question, and its call was interrupted after saving, so that
        the caller never got the answer.
        """
        for turn in reversed(state["chat_history"]):
            has_id = request.has_id_of(turn)
            if has_id or request.may_repeat(turn, state):
                was_interrupted = await self._was_interrupted(turn, state, opened)
                if has_id or was_interrupted:
                    return turn
        return None

    async def _was_interrupted(self, turn: QaPair, state: ConversationState, opened: OpenStores) -> bool:
        """Remember a saved turn whose thread still exists, and return whether it does."""
        thread_id = _thread_of(state, turn["turn_id"])
        if is_absent(await opened.graph.aget_state({"configurable": {"thread_id": thread_id}})):
            return False
        await remember(opened.memory, state["conversation_id"], state["chat_history"])
        return True

    async def _parent(self, state: ConversationState, parent_turn_id: str | None) -> QaPair | None:
        if parent_turn_id is None:
            parent_turn_id = state["branches"][state["active_branch"]]["head_turn_id"]
        if parent_turn_id == FIRST:
            return None
        found = await self._record.find(state, parent_turn_id)
        if found is None:
            raise SettingsError(
                f"The conversation {self._name!r} has no turn {parent_turn_id!r} to follow. "
                "Give the turn_id of one of its turns (history(), turns()), or none for the newest."
            )
        return found

    async def _answer(
        self, started: StartedTurn, request: Request, opened: OpenStores, listener: Listener | None
    ) -> Outcome:
        """Run the turn unless an earlier call saved it; a failed model leaves it open."""
        if started.saved is not None:
            return await self._outcome(started.saved)
        return await traced(
            self._services,
            started,
            lambda: self._run_or_fail(started, request, opened, listener),
            lambda error: self._unfinished(started, opened, error),
        )

    async def _run_or_fail(
        self, started: StartedTurn, request: Request, opened: OpenStores, listener: Listener | None
    ) -> Outcome:
        try:
            with running_turns().entered(self._key) as halt:
                return await self._run(started, request, opened, listener, halt)
        except UserError:
            raise
        except JudgetreeError as failure:
            return await self._unfinished(started, opened, str(failure))

    async def open_calls(self) -> tuple[str, tuple[CallRecord, ...]]:
        """Return the id of the open turn with its model calls so far, see ``Conversation.open_calls``."""
        opened = await self._services.open()
        state = await self._record.load()
        if state is None or (turn := state["open_turn"]) is None:
            return "", ()
        started = StartedTurn(turn=turn, resumed=True, state=state)
        with self._services.store_errors():
            return turn["turn_id"], (await self._unfinished(started, opened, "")).calls

    async def abandoned_calls(self) -> tuple[str, tuple[CallRecord, ...]]:
        """Return the open turn's id and calls while no process holds the conversation's lock; otherwise nothing."""
        opened = await self._services.open()
        try:
            async with opened.locks.hold(self._name, wait=False):
                return await self.open_calls()
        except ConversationBusy:
            return "", ()

    async def _outcome(
        self, turn: QaPair, tree: SearchTree | None = None, own_calls: Sequence[CallRecord] | None = None
    ) -> Outcome:
        """Return the outcome of a saved turn; the tree is read unless it is given.

        ``own_calls`` are those besides the search; None for a turn that an earlier call saved.
        """
        if tree is None and turn["rag_thread_id"]:
            tree = await read_search_tree(turn["rag_thread_id"], self._services.rag)
        return Outcome(
            saved=turn,
            standalone_query=turn["standalone_query"],
            tree=tree,
            usage=turn["usage"],
            calls=() if own_calls is None else calls_of_turn(own_calls, tree),
        )

    async def _unfinished(self, started: StartedTurn, opened: OpenStores, error: str) -> Outcome:
        """Return the outcome of a failed turn: what its checkpoints and the call journal hold so far."""
        root = rag_thread_of(started.state["conversation_id"], started.turn["turn_id"])
        thread_id = turn_thread(root)
        snapshot = await opened.graph.aget_state({"configurable": {"thread_id": thread_id}})
        tree = await read_search_tree(root, self._services.rag)
        journal = await self._services.rag.aopen_journal()
        calls = await calls_so_far(snapshot.values.get("usage", []), tree, journal, thread_id, root)
        return Outcome(
            error=error,
            standalone_query=snapshot.values.get("standalone_query") or started.turn["query"],
            tree=tree,
            usage=total_usage(calls),
            calls=calls,
        )

    async def _run(
        self, started: StartedTurn, request: Request, opened: OpenStores, listener: Listener | None, halt: StopSignal
    ) -> Outcome:
        turn, conversation_id = cast(OpenTurn, started.turn), started.state["conversation_id"]
        thread_id = _thread_of(started.state, turn["turn_id"])
        rag = self._services.rag
        journal = await rag.aopen_journal()
        transcripts = rag.transcripts_of(rag_thread_of(conversation_id, turn["turn_id"]), owner=conversation_id)
        context = await self._services.turn_context(
            started.state,
            options=self._options,
            overrides=request.overrides,
            stream=Stream(listener) if listener else None,
            calls=await thread_calls(journal, thread_id, is_new=not started.resumed, transcripts=transcripts),
        )
        context = replace(context, services=replace(context.services, halt=halt))
        config: RunnableConfig = {
            "configurable": {"thread_id": thread_id},
            "metadata": {"conversation_id": conversation_id},
        }
        known = await opened.graph.aget_state(config) if started.resumed else None
        context = await self._limited(context, turn, known.values if known else {})
        final: Mapping[str, object]
        if known is not None and is_finished(known):
            final = known.values
        else:
            start: TurnState | None = None
            if known is None or is_absent(known):
                context.emit("load_history")
                start = await load_history(context, turn, request.chat_history)
            final = await opened.graph.ainvoke(start, config, context=context, durability="sync")
            if waiting := format_waiting(interrupts_in(final)):
                raise QuestionInterrupted(f"{waiting} Conversations take no answers: the turn stays open.")
        if transcripts is not None:
            await transcripts.flush()
        saved = cast(TurnState, final)["turn"]
        await log_turn(self._services.settings.qa_log, self._name, saved)
        own_calls = cast(TurnState, final).get("usage", [])
        return await self._outcome(saved, context.trees.get(saved["rag_thread_id"]), own_calls)

    async def _limited(self, context: TurnContext, turn: OpenTurn, saved: Mapping[str, Any]) -> TurnContext:
        """Return the context with the limits of the question, of which its earlier runs have used a part."""
        root = saved.get("rag_thread_id")
        tree = await read_search_tree(root, self._services.rag) if root else None
        return replace(context, budget=await open_budget(context, turn, saved.get("usage", []), tree))

    def _session_event(self, started: StartedTurn) -> SessionEvent:
        turn = started.turn
        return SessionEvent(
            name=self._name,
            conversation_id=started.state["conversation_id"],
            turn_id=turn["turn_id"],
            parent_turn_id=turn["parent_turn_id"],
            turn_number=turn["turn_number"],
            branch=started.branch,
            resumed=started.resumed,
        )


def _thread_of(state: ConversationState, turn_id: str) -> str:
    return turn_thread(rag_thread_of(state["conversation_id"], turn_id))
