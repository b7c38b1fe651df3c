"""One conversation: its questions, its history and its branches."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ...modules.background_loop import async_twin, background_loop, blocking
from ...modules.errors import SettingsError
from ...modules.formats import check_id
from ...modules.memory.messages import GivenHistory, pairs_of
from ...modules.memory.turns import MAIN_BRANCH, Branch, OpenTurn, QaPair, is_on_path, path_spans
from ..rag.search_tree import SearchTree
from . import branches
from .record import ConversationRecord
from .services import ConversationServices
from .tree import ConversationTree, read_conversation
from .turn.events import ConversationEvent, Listener
from .turn.result import TurnResult
from .turn_runner import FIRST, Request, TurnRunner

__all__ = ["FIRST", "Conversation", "GivenHistory"]


class Conversation:
    """A handle on one conversation, made by ``Conversations.conversation``.

    All methods may be called from any thread, notebook cell or event loop. Turns of one conversation wait for each
    other; those of different ones run at the same time.

    ::

        with Conversations("standards") as conversations:
            conversation = conversations.conversation("monday")
            print(conversation.ask("How hot may the gasket become?").answer)
    """

    def __init__(self, services: ConversationServices, name: str) -> None:
        if not name.strip():
            raise SettingsError("A conversation needs a name: any text that is not empty.")
        check_id("The name of a conversation", name)
        self.name = name
        self._services = services
        self._record = ConversationRecord(services, name)
        self._runner = TurnRunner(services, self._record)

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
    ) -> TurnResult:
        """Answer one question of the conversation.

        A turn that was begun and not finished (a crash, Ctrl-C, a model that failed) goes on when the same request, or
        the same question under the same parent, comes again; what was paid for is not paid again. A model that fails
        gives a result with status "failed".

        Args:
            query: The question as it is asked.
            parent_turn_id: The earlier turn that it follows; its history is the path to that one. None takes the newest
                turn of the active branch, ``FIRST`` begins anew.
            request_id: The caller's own name for the request. One that was answered, within the turns that the
                conversation's state holds, is given back at no cost.
            regenerate: Begin a new turn even if the same question is open.
            chat_history: Earlier turns that the caller keeps; they take the place of the conversation's own.
            on_event: Called, on judgetree's own thread, with each event of the turn.

        Raises:
            UserError: Something to mend: settings, collection, an unknown parent, key, model name.
            LoopReentryError: Called from judgetree's own loop; use ``aask`` there.
        """
        request = _request(query, parent_turn_id, request_id, regenerate, chat_history)
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
    ) -> AsyncIterator[ConversationEvent]:
        """The events of ``ask``, as they come; the last one is a ``DoneEvent``, which holds the result.

        Raises:
            UserError: See ``ask``; an ``ErrorEvent`` comes before it.
        """
        return self._runner.stream(_request(query, parent_turn_id, request_id, regenerate, chat_history))

    astream = async_twin(stream)

    @blocking
    async def regenerate(self, *, on_event: Listener | None = None) -> TurnResult:
        """Ask the newest question of the active branch again, as a new turn beside the old one, on a new branch.

        Raises:
            SettingsError: Nothing has been asked yet.
        """
        history = await self.ahistory()
        if not history:
            raise SettingsError(f"The conversation {self.name!r} has no turn yet.")
        last = history[-1]
        return await self.aask(last["query"], parent_turn_id=last["parent_turn_id"], regenerate=True, on_event=on_event)

    aregenerate = async_twin(regenerate)

    @blocking
    async def history(self) -> list[QaPair]:
        """The turns of the active branch, from the first on."""
        state, turns = await self._record.all_turns()
        if state is None:
            return []
        branch = state["branches"][state["active_branch"]]
        spans = path_spans(state["branches"], branch["branch_id"], branch["head_number"])
        return sorted((t for t in turns if is_on_path(t, spans)), key=lambda turn: turn["turn_number"])

    ahistory = async_twin(history)

    @blocking
    async def turns(self) -> list[QaPair]:
        """All turns of all branches, in the order in which they were answered."""
        return (await self._record.all_turns())[1]

    aturns = async_twin(turns)

    @blocking
    async def search_tree(self, turn: QaPair) -> SearchTree | None:
        """The search tree of a turn; None where nothing was searched for, or where it is gone."""
        return await self._record.search_tree(turn)

    asearch_tree = async_twin(search_tree)

    @blocking
    async def tree(self) -> ConversationTree:
        """All turns with their search trees, as data to keep, hand on and look at; no model is called.

        Costs one reading of the history per thread of every search tree.
        """
        state, turns = await self._record.all_turns()
        with self._services.store_errors():
            return await read_conversation(self.name, state, turns, self._services.rag)

    atree = async_twin(tree)

    @blocking
    async def branches(self) -> list[Branch]:
        """All branches, the first one first."""
        state = await self._record.load()
        return [] if state is None else list(state["branches"].values())

    abranches = async_twin(branches)

    @property
    def active_branch(self) -> str:
        """Name of the branch that is spoken in."""
        state = background_loop().run(self._record.load())
        return state["branches"][state["active_branch"]]["name"] if state else MAIN_BRANCH

    @property
    def conversation_id(self) -> str:
        """Its random id, by which memory and threads know it; ``""`` before anything was asked."""
        state = background_loop().run(self._record.load())
        return state["conversation_id"] if state else ""

    @property
    def open_turn(self) -> OpenTurn | None:
        """The turn that was begun and not finished; asking its question again goes on with it."""
        state = background_loop().run(self._record.load())
        return state["open_turn"] if state else None

    @blocking
    async def switch(self, branch: str) -> None:
        """Go on with another branch.

        Raises:
            SettingsError: There is no such branch, or no such conversation.
        """
        await self._record.change(lambda state: branches.switched(state, branch))

    aswitch = async_twin(switch)

    @blocking
    async def rename_branch(self, branch: str, new_name: str) -> None:
        """Give a branch another name.

        Raises:
            SettingsError: There is no such branch, or the new name is empty or taken.
        """
        await self._record.change(lambda state: branches.renamed(state, branch, new_name))

    arename_branch = async_twin(rename_branch)

    @blocking
    async def delete_branch(self, branch: str) -> int:
        """Delete a branch with its turns and their search trees; how many turns that were.

        Raises:
            SettingsError: It is the main or the active one, others fork from it, or there is none of that name.
        """
        return await self._record.delete_branch(branch)

    adelete_branch = async_twin(delete_branch)

    @blocking
    async def undo(self) -> QaPair:
        """Take back the newest turn of the active branch, with its search tree.

        Raises:
            SettingsError: Nothing has been asked yet, or another branch forks from it.
        """
        return await self._record.undo()

    aundo = async_twin(undo)


def _request(
    query: str, parent_turn_id: str | None, request_id: str, regenerate: bool, chat_history: GivenHistory
) -> Request:
    return Request(
        query=query,
        parent_turn_id=parent_turn_id,
        request_id=request_id,
        regenerate=regenerate,
        chat_history=pairs_of(chat_history),
    )
