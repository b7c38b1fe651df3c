"""What all conversations share while they are open: store, memory, locks and the graph of a turn."""

from __future__ import annotations

from ...modules.judge.contract import Judge
from ...modules.judge.generated import GeneratedJudge
from ...modules.llm.json_reply import JsonChat
from ..threads.context import RagContext
from .identity import StoreIdentity
from .locks import ConversationLocks
from .turn.context import TurnMemory
from .turn.graph import CompiledTurn
from .turn.store import ConversationStore

_STORE_LOCK = ""
"""Held while the store's id is made; no conversation has an empty name."""


class Opened:
    """What all conversations share while they are open."""

    def __init__(
        self,
        *,
        store: ConversationStore,
        identity: StoreIdentity,
        memory: TurnMemory,
        locks: ConversationLocks,
        graph: CompiledTurn,
    ) -> None:
        self.store = store
        self.identity = identity
        self.memory = memory
        self.locks = locks
        self.graph = graph
        self.settled_turns: dict[str, str] = {}
        """Conversation to its last turn that has ended as it should in this process, with nothing left behind."""
        self._chat: JsonChat | None = None
        self._judge: Judge | None = None
        self._store_id = ""

    async def make_store_id(self) -> str:
        """The id of the checkpoint store, made where there is none."""
        if not self._store_id:
            async with self.locks.hold(_STORE_LOCK):
                self._store_id = await self.identity.make()
        return self._store_id

    def chat_of(self, services: RagContext, max_tokens: int) -> JsonChat:
        """The reader, for replies as JSON; one for all turns, so that its formats are found out once."""
        if self._chat is None:
            self._chat = JsonChat(services.reader, max_tokens=max_tokens)
        return self._chat

    def judge_of(self, services: RagContext) -> Judge:
        """The judge of the search; where that has none, the reader, which writes its verdicts."""
        if self._judge is None:
            self._judge = services.judge or GeneratedJudge(services.reader)
        return self._judge
