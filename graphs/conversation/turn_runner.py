"""How one question of a conversation is asked: its turn opened or found again, answered, and told of."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from langchain_core.runnables import RunnableConfig

from ...modules.calls.journal import thread_calls
from ...modules.errors import JudgetreeError, SettingsError, UserError
from ...modules.formats import check_id, check_text
from ...modules.memory.turns import OpenTurn, QaPair, rag_thread_of
from ..threads.snapshots import is_absent, is_finished
from . import branches
from .record import ConversationRecord
from .services import ConversationServices
from .turn.context import turn_fingerprint
from .turn.events import ConversationEvent, DoneEvent, ErrorEvent, Listener, SessionEvent, SourceEvent, Stream
from .turn.history import chunks_of, load_history
from .turn.result import TurnResult
from .turn.saving import remember
from .turn.state import ConversationState, TurnState
from .turn.store import turn_thread

FIRST = ""
"""As a parent: begin anew, as a first turn."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One question; see ``Conversation.ask``."""

    query: str
    parent_turn_id: str | None
    request_id: str
    regenerate: bool
    chat_history: list[tuple[str, str]]

    def check(self) -> None:
        """Do nothing if everything in the request can be kept.

        Raises:
            SettingsError: The question is empty, or some text is too long or none that a store can keep.
        """
        check_text("The question", self.query)
        if not self.query.strip():
            raise SettingsError("The question is empty.")
        check_id("request_id", self.request_id)
        check_id("parent_turn_id", self.parent_turn_id or "")
        for text in (text for pair in self.chat_history for text in pair):
            check_text("A text of chat_history", text)

    @property
    def history_digest(self) -> str:
        """Of the history that the caller keeps; ``""`` where the conversation's own counts."""
        if not self.chat_history:
            return ""
        return hashlib.sha256(json.dumps(self.chat_history).encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """A turn that was opened, or found again."""

    turn: OpenTurn
    branch: str
    """Its branch's name."""
    resumed: bool
    state: ConversationState
    """The conversation with the turn open."""
    saved: QaPair | None = None
    """The turn itself, if it is answered already."""


class TurnRunner:
    """Asks the questions of one conversation, one after the other; use it on judgetree's own loop."""

    def __init__(self, services: ConversationServices, record: ConversationRecord) -> None:
        self._services = services
        self._record = record
        self._name = record.name

    async def stream(self, request: Request) -> AsyncIterator[ConversationEvent]:
        """The events of one question as they come; whoever stops listening cancels the turn, which stays open."""
        events: asyncio.Queue[ConversationEvent | None] = asyncio.Queue()
        asked = asyncio.create_task(self.ask(request, events.put_nowait))
        asked.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await asked
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    async def ask(self, request: Request, listener: Listener | None) -> TurnResult:
        """See ``Conversation.ask``."""
        started = time.perf_counter()
        tell = listener or _ignore_event
        try:
            request.check()
            opened = await self._services.open()
            async with opened.locks.hold(self._name):
                with self._services.store_errors():
                    begun = await self._begin(request)
                    tell(self._session_event(begun))
                    saved, error = await self._answer(begun, request, listener)
                    sources = (
                        await chunks_of(saved["chunks"], self._services.rag) if saved and self._shows(listener) else []
                    )
        except UserError as failure:
            tell(ErrorEvent(message=str(failure)))
            raise
        for number, chunk in enumerate(sources, start=1):
            tell(_source_event(number, chunk.page_content, chunk.metadata))
        if error:
            tell(ErrorEvent(message=error))
        options = self._services.options
        result = TurnResult(
            name=self._name,
            conversation_id=begun.state["conversation_id"],
            answer=saved["answer"] if saved else "",
            status=saved["status"] if saved else "failed",
            turn=saved,
            turn_id=begun.turn["turn_id"],
            branch=begun.branch,
            resumed=begun.resumed,
            wall_s=time.perf_counter() - started,
            error=error,
            source_documents=tuple(sources) if options.return_source_documents else None,
            generated_question=saved["standalone_query"] if saved and options.return_generated_question else None,
        )
        tell(DoneEvent(result=result))
        return result

    def _shows(self, listener: Listener | None) -> bool:
        return listener is not None or self._services.options.return_source_documents

    async def _begin(self, request: Request) -> _Begun:
        """The turn that answers the request, saved before anything is asked of a model."""
        opened = await self._services.open()
        store = opened.store
        saved_state = await store.load(self._name)
        state = saved_state or await self._record.new()
        if (answered := await self._answered(state, request)) is not None:
            return answered
        collection, options = self._services.collection, self._services.options
        if not options.switch_collection:
            branches.refuse_other_collection(state, collection)
        parent = await self._parent(state, request.parent_turn_id)
        going_on = branches.resumable(
            state,
            query=request.query,
            parent_turn_id=parent["turn_id"] if parent else FIRST,
            request_id=request.request_id,
            regenerate=request.regenerate,
            given_history=request.history_digest,
            collection=collection,
            fingerprint=turn_fingerprint(self._services.options, self._services.limits),
        )
        if going_on is not None:
            return _Begun(
                turn=going_on, branch=state["branches"][going_on["branch_id"]]["name"], resumed=True, state=state
            )
        changes = branches.opened(
            state,
            query=request.query,
            parent=parent,
            request_id=request.request_id,
            given_history=request.history_digest,
            collection=collection,
            fingerprint=turn_fingerprint(self._services.options, self._services.limits),
        )
        await self._services.open_services()  # a mistake in the settings leaves no open turn
        now_open = cast(ConversationState, {**state, **changes})
        if saved_state is None:
            await store.begin(now_open)
        else:
            await store.save(state, changes)
        await self._clear_away(state)
        turn = cast(OpenTurn, changes["open_turn"])
        return _Begun(turn=turn, branch=changes["branches"][turn["branch_id"]]["name"], resumed=False, state=now_open)

    async def _clear_away(self, before: ConversationState) -> None:
        """Delete what an open turn that was given up has left, and the thread of a last turn that was cut off."""
        opened = await self._services.open()
        if given_up := before["open_turn"]:
            root = rag_thread_of(before["conversation_id"], given_up["turn_id"])
            await opened.store.delete_threads([turn_thread(root), *await opened.store.tree_threads(root)])
        last = before["chat_history"][-1]["turn_id"] if before["chat_history"] else ""
        if last and opened.finished_turns.get(before["conversation_id"]) != last:
            await opened.store.delete_threads([_thread_of(before, last)])

    async def _answered(self, state: ConversationState, request: Request) -> _Begun | None:
        """The turn that the request has led to before; None if there is none.

        It is known by its id; or it is the same question again, and whoever asked it was never told of its answer.
        """
        for turn in reversed(state["chat_history"]):
            is_known = bool(request.request_id) and turn["request_id"] == request.request_id
            if is_known:
                branches.refuse_other_question(turn["query"], request.query, request.request_id)
            if is_known or _is_repeated(state, turn, request):
                was_cut_off = await self._wind_up(turn, state)
                if is_known or was_cut_off:
                    name = state["branches"][turn["branch_id"]]["name"]
                    return _Begun(turn=_open_turn_of(turn), branch=name, resumed=True, state=state, saved=turn)
        return None

    async def _wind_up(self, turn: QaPair, state: ConversationState) -> bool:
        """Whether a saved turn was cut off before its thread was deleted; what was left to do is done then."""
        opened = await self._services.open()
        thread_id = _thread_of(state, turn["turn_id"])
        if is_absent(await opened.graph.aget_state({"configurable": {"thread_id": thread_id}})):
            return False
        await remember(opened.memory, state["conversation_id"], state["chat_history"])
        await opened.store.delete_threads([thread_id])
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

    async def _answer(self, begun: _Begun, request: Request, listener: Listener | None) -> tuple[QaPair | None, str]:
        """The saved turn, or None and why it failed."""
        if begun.saved is not None:
            return begun.saved, ""
        try:
            return await self._run(begun, request.chat_history, listener), ""
        except UserError:
            raise
        except JudgetreeError as failure:
            return None, str(failure)

    async def _run(self, begun: _Begun, given: list[tuple[str, str]], listener: Listener | None) -> QaPair:
        opened = await self._services.open()
        stream = Stream(listener) if listener else None
        conversation_id = begun.state["conversation_id"]
        thread_id = _thread_of(begun.state, begun.turn["turn_id"])
        context = await self._services.turn_context(begun.state, stream)
        journal = await self._services.rag.aopen_journal()
        context = replace(context, calls=await thread_calls(journal, thread_id, is_new=not begun.resumed))
        config: RunnableConfig = {
            "configurable": {"thread_id": thread_id},
            "metadata": {"conversation_id": conversation_id},
        }
        known = await opened.graph.aget_state(config) if begun.resumed else None
        final: Mapping[str, object]
        if known is None or is_absent(known):
            context.emit("load_history")
            start = await load_history(context, begun.turn, given)
            final = await opened.graph.ainvoke(start, config, context=context, durability="sync")
        elif is_finished(known):
            final = known.values
        else:
            final = await opened.graph.ainvoke(None, config, context=context, durability="sync")
        await opened.store.delete_threads([thread_id])
        opened.finished_turns[conversation_id] = begun.turn["turn_id"]
        return cast(TurnState, final)["turn"]

    def _session_event(self, begun: _Begun) -> SessionEvent:
        turn = begun.turn
        return SessionEvent(
            name=self._name,
            conversation_id=begun.state["conversation_id"],
            turn_id=turn["turn_id"],
            parent_turn_id=turn["parent_turn_id"],
            turn_number=turn["turn_number"],
            branch=begun.branch,
            resumed=begun.resumed,
        )


def _thread_of(state: ConversationState, turn_id: str) -> str:
    return turn_thread(rag_thread_of(state["conversation_id"], turn_id))


def _ignore_event(event: ConversationEvent) -> None:
    pass


def _is_repeated(state: ConversationState, turn: QaPair, request: Request) -> bool:
    """Whether a request may be the one again that a turn has answered: it asks the same in the same place."""
    if (
        request.regenerate
        or request.chat_history
        or turn["query"] != request.query
        or (request.request_id and turn["request_id"])
    ):
        return False
    if request.parent_turn_id is None:
        return turn["turn_id"] == state["branches"][state["active_branch"]]["head_turn_id"]
    return turn["parent_turn_id"] == request.parent_turn_id


def _open_turn_of(turn: QaPair) -> OpenTurn:
    return OpenTurn(
        turn_id=turn["turn_id"],
        parent_turn_id=turn["parent_turn_id"],
        branch_id=turn["branch_id"],
        turn_number=turn["turn_number"],
        query=turn["query"],
        request_id=turn["request_id"],
        collection=turn["collection"],
    )


def _source_event(number: int, text: str, metadata: Mapping[str, object]) -> SourceEvent:
    score = metadata.get("score")
    return SourceEvent(
        number=number,
        chunk_id=str(metadata["chunk_id"]),
        source=str(metadata.get("source", "")),
        score=score if isinstance(score, int) else None,
        text=text,
    )
