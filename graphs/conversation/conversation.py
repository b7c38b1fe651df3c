"""One conversation: its questions, its history and its branches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...modules.background_loop import async_twin, background_loop, blocking
from ...modules.calls.record import CallRecord
from ...modules.errors import SettingsError
from ...modules.memory.messages import GivenHistory, pairs_of
from ...modules.memory.turns import MAIN_BRANCH, Branch, OpenTurn, QaPair, is_on_path, path_spans
from ...modules.storage.texts import check_id
from ..config.given_keys import GivenKeys
from ..rag.search_tree import SearchTree
from . import branches
from .delivery import Delivery
from .record import ConversationRecord
from .request import FIRST, Request
from .services import ConversationServices
from .tree import ConversationTree, read_conversation, read_search_tree
from .turn.context import ConversationOptions
from .turn.events import ConversationEvent, Listener
from .turn.result import TurnResult
from .turn.store import ConversationSummary, summary_of
from .turn_runner import TurnRunner

__all__ = ["FIRST", "Conversation", "ConversationContents"]


@dataclass(frozen=True, kw_only=True)
class ConversationContents:
    """A conversation as it is at one moment."""

    summary: ConversationSummary
    turns: tuple[QaPair, ...]
    """All turns of all branches, in the order of their answers."""

    def history(self) -> list[QaPair]:
        """Return the turns on the path to the newest turn of the active branch, oldest first."""
        branches = {branch["branch_id"]: branch for branch in self.summary.branches}
        active = branches[self.summary.active_branch]
        spans = path_spans(branches, active["branch_id"], active["head_number"])
        return sorted((t for t in self.turns if is_on_path(t, spans)), key=lambda turn: turn["turn_number"])


class Conversation:
    """One conversation, made by ``Conversations.conversation`` or ``RagSession.chat``.

    All methods may be called from any thread, notebook cell or event loop. Turns of one conversation wait for each
    other; turns of different conversations run at the same time.

    ::

        with Conversations("standards") as conversations:
            conversation = conversations.conversation("monday")
            print(conversation.ask("How hot may the gasket become?").answer)
    """

    def __init__(self, services: ConversationServices, name: str, options: ConversationOptions) -> None:
        if not name.strip():
            raise SettingsError("A conversation needs a name: any text that is not empty.")
        check_id("The name of a conversation", name)
        self.name = name
        self._services = services
        self._record = ConversationRecord(services, name)
        self._runner = TurnRunner(services, self._record, services.complete_options(options))

    @blocking
    async def ask(
        self,
        query: str,
        *,
        parent_turn_id: str | None = None,
        request_id: str = "",
        regenerate: bool = False,
        chat_history: GivenHistory = (),
        on_event: Listener | None = None,
        **keys: object,
    ) -> TurnResult:
        """Answer one question of the conversation. If the model fails, the result has status "failed".

        A turn without an answer (after a crash, Ctrl-C or a failed model) stays open. The same request, or the same
        question under the same parent, resumes it and repeats no model call that was paid for.

        Args:
            query: The question in the user's words.
            parent_turn_id: The earlier turn that the question follows; the path to it is the question's history. None
                takes the newest turn of the active branch, ``FIRST`` starts without history.
            request_id: The caller's own id of the request. If one of the newest turns has answered it, that turn is
                returned at no cost.
            regenerate: Start a new turn even if the same question is open.
            chat_history: Earlier turns that the caller keeps, used instead of the conversation's own.
            on_event: Called, on judgetree's own thread, with each event of the turn.
            **keys: What this turn has otherwise than the session: llm, topk, rerank, max_llm_calls, … The same question
                with others is another turn; the turn names them.

        Raises:
            UserError: The settings, collection, parent, API key or model name need a correction.
            LoopReentryError: Called from judgetree's own loop; use ``aask`` there.
        """
        request = self._request(query, parent_turn_id, request_id, regenerate, chat_history, keys)
        return await self._runner.ask(request, on_event)

    aask = async_twin(ask)

    @blocking
    def stream(
        self,
        query: str,
        *,
        parent_turn_id: str | None = None,
        request_id: str = "",
        regenerate: bool = False,
        chat_history: GivenHistory = (),
        delivery: Delivery | None = None,
        **keys: object,
    ) -> AsyncIterator[ConversationEvent]:
        """Yield the events of ``ask`` as they happen; the last is a ``DoneEvent``, which holds the result.

        A caller who passes the events on gives a ``delivery``, and confirms it once the last one has arrived. Until
        then the conversation waits, and the same question, asked again, gets this turn.

        Raises:
            UserError: See ``ask``; an ``ErrorEvent`` precedes it.
        """
        request = self._request(query, parent_turn_id, request_id, regenerate, chat_history, keys)
        return self._runner.stream(replace(request, delivery=delivery))

    astream = async_twin(stream)

    @blocking
    async def regenerate(self, *, on_event: Listener | None = None, **keys: Any) -> TurnResult:
        """Ask the newest question of the active branch again, in a new turn on a new branch.

        Raises:
            SettingsError: The conversation has no turn yet.
        """
        history = await self.ahistory()
        if not history:
            raise SettingsError(f"The conversation {self.name!r} has no turn yet.")
        last = history[-1]
        return await self.aask(
            last["query"], parent_turn_id=last["parent_turn_id"], regenerate=True, on_event=on_event, **keys
        )

    aregenerate = async_twin(regenerate)

    @blocking
    async def stop(self) -> None:
        """End the search of the question that the conversation is answering; its call returns the answer.

        It may be called while ``ask`` or ``stream`` runs, also by another object of the same conversation in this
        process. Judges, searches and sub-questions are cancelled, as at the end of ``Limits.max_tree_seconds``; the
        answer is written from what was found, and ``spent_limits`` of the tree names "stopped". An answer that is being
        written is not cut off. Without any chunk the reader is asked without evidence.

        Raises:
            NoRunningQuestion: This process is answering no question of the conversation.
        """
        await self._runner.stop()

    astop = async_twin(stop)

    @blocking
    async def contents(self) -> ConversationContents | None:
        """Return its summary and all turns as they are at one moment; None before the first question."""
        state, turns = await self._record.all_turns()
        return None if state is None else ConversationContents(summary=summary_of(state), turns=tuple(turns))

    acontents = async_twin(contents)

    @blocking
    async def history(self) -> list[QaPair]:
        """Return the turns on the path to the newest turn of the active branch, oldest first."""
        contents = await self.acontents()
        return [] if contents is None else contents.history()

    ahistory = async_twin(history)

    @blocking
    async def turns(self) -> list[QaPair]:
        """Return all turns of all branches, in the order of their answers."""
        return (await self._record.all_turns())[1]

    aturns = async_twin(turns)

    @blocking
    async def search_tree(self, turn: QaPair) -> SearchTree | None:
        """Return the search tree of a turn; None if the turn made no search, or its tree was deleted."""
        if not turn["rag_thread_id"]:
            return None
        with self._services.store_errors():
            return await read_search_tree(turn["rag_thread_id"], self._services.rag)

    asearch_tree = async_twin(search_tree)

    @blocking
    async def tree(self) -> ConversationTree:
        """Return all turns with their search trees, to be exported or drawn; no model is called.

        It reads the history of each thread of every search tree once.
        """
        state, turns = await self._record.all_turns()
        with self._services.store_errors():
            return await read_conversation(self.name, state, turns, self._services.rag)

    atree = async_twin(tree)

    @blocking
    async def branches(self) -> list[Branch]:
        """Return all branches, the main branch first."""
        state = await self._record.load()
        return [] if state is None else list(state["branches"].values())

    abranches = async_twin(branches)

    @blocking
    async def open_calls(self) -> tuple[str, tuple[CallRecord, ...]]:
        """Return the id of the started turn without an answer, and its model calls so far, search included.

        Without one, the id is ``""``.
        """
        return await self._runner.open_calls()

    aopen_calls = async_twin(open_calls)

    @blocking
    async def abandoned_calls(self) -> tuple[str, tuple[CallRecord, ...]]:
        """Return the id and the model calls of an open turn that no process answers; ``""`` and none without one."""
        return await self._runner.abandoned_calls()

    aabandoned_calls = async_twin(abandoned_calls)

    @property
    def active_branch(self) -> str:
        """Name of the active branch, which the next question continues."""
        state = background_loop().run(self._record.load())
        return state["branches"][state["active_branch"]]["name"] if state else MAIN_BRANCH

    @property
    def conversation_id(self) -> str:
        """Random id that keys its memory, threads and trees; ``""`` before the first question."""
        state = background_loop().run(self._record.load())
        return state["conversation_id"] if state else ""

    @property
    def open_turn(self) -> OpenTurn | None:
        """The started turn without an answer, which the same question resumes; None without one."""
        state = background_loop().run(self._record.load())
        return state["open_turn"] if state else None

    @blocking
    async def switch(self, branch: str) -> None:
        """Make another branch the active one, which the next question continues.

        Raises:
            SettingsError: The branch or the conversation does not exist.
        """
        await self._record.change(lambda state: branches.switched(state, branch))

    aswitch = async_twin(switch)

    @blocking
    async def rename_branch(self, branch: str, new_name: str) -> None:
        """Rename a branch.

        Raises:
            SettingsError: The branch does not exist, or the new name is empty or taken.
        """
        await self._record.change(lambda state: branches.renamed(state, branch, new_name))

    arename_branch = async_twin(rename_branch)

    @blocking
    async def delete_branch(self, branch: str) -> int:
        """Delete a branch with its turns and their search trees; returns the number of deleted turns.

        Raises:
            SettingsError: The branch is the main or the active one, others fork from it, or it does not exist.
        """
        async with self._record.held() as (state, opened):
            changes = branches.without_branch(state, branch)
            branch_id = branches.branch_named(state["branches"], branch)["branch_id"]
            turns = [turn for turn in (await self._record.all_turns())[1] if turn["branch_id"] == branch_id]
            await self._record.delete_turns(state, turns, changes, opened)
        return len(turns)

    adelete_branch = async_twin(delete_branch)

    @blocking
    async def undo(self, turn_id: str | None = None) -> QaPair:
        """Delete the newest turn of the active branch with its search tree, and return the turn.

        Args:
            turn_id: Id of the turn; None for the newest one.

        Raises:
            SettingsError: The active branch has no turn of its own, or another branch forks from the turn, or the turn
                that is meant is not the newest.
        """
        async with self._record.held() as (state, opened):
            head = state["branches"][state["active_branch"]]["head_turn_id"]
            last = await self._record.find(state, head) if head else None
            if last is None or last["branch_id"] != state["active_branch"]:
                raise SettingsError("There is nothing to undo: the active branch has no turn of its own.")
            if turn_id not in (None, last["turn_id"]):
                raise SettingsError(
                    "The turn is not the newest of the active branch any more, so that it was not deleted: another one "
                    "was asked after it, or it is deleted already. Look at the conversation again."
                )
            await self._record.delete_turns(state, [last], branches.without_last_turn(state, last), opened)
        return last

    aundo = async_twin(undo)

    def _request(
        self,
        query: str,
        parent_turn_id: str | None,
        request_id: str,
        regenerate: bool,
        chat_history: GivenHistory,
        keys: Mapping[str, object],
    ) -> Request:
        return Request(
            query=query,
            system=self._services.session.system,
            collection=self._services.collection,
            parent_turn_id=parent_turn_id,
            request_id=request_id,
            regenerate=regenerate,
            chat_history=pairs_of(chat_history),
            overrides=GivenKeys.of_question(keys),
        )
