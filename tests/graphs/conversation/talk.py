"""Conversations over a small table of chunks, led by a scripted model that keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from langchain_core.documents import Document

from judgetree.graphs.conversation.conversation import Conversation
from judgetree.graphs.conversation.turn.context import ConversationOptions, TurnLimits, TurnMemory
from judgetree.graphs.conversation.turn.result import TurnResult
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError
from judgetree.modules.judge.contract import Judge
from judgetree.modules.judge.prompts import INSERT_BLOCK_SYSTEM, JUDGE_SYSTEM
from judgetree.modules.memory import prompts as ours
from judgetree.modules.memory.memory import ConversationMemory
from judgetree.modules.memory.turns import QaPair
from judgetree.modules.reader.prompts import READER_SYSTEM, REFUSAL
from judgetree.modules.retriever.web import WebSearch
from judgetree.modules.settings import Settings, load_settings
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk
from tests.modules.fake_embeddings import BagOfWordsEmbedder

KINDS = {
    READER_SYSTEM: "read",
    JUDGE_SYSTEM: "judge",
    INSERT_BLOCK_SYSTEM: "block",
    ours.SELECT_SYSTEM: "select",
    ours.ASSESS_SYSTEM: "assess",
    ours.CONDENSE_SYSTEM: "condense",
    ours.KNOWLEDGE_SYSTEM: "knowledge",
    ours.DIGEST_SYSTEM: "digest",
    ours.SUMMARY_SYSTEM: "summary",
    ours.SMALL_TALK_SYSTEM: "small_talk",
    ours.ROUTE_SYSTEM: "route",
}

CLASS, OIL, SCREW = "Which class is KS-1?", "Which oil does class Delta need?", "Which screws does KS-9 have?"
TABLE = {
    CLASS: [chunk("class", "KS-1 is class Delta, and is green.")],
    OIL: [chunk("oil", "Class Delta needs Vellin.")],
    SCREW: [chunk("screw", "KS-9 has M8 screws.")],
}
ANSWERS = {CLASS: "Delta", OIL: "Vellin", SCREW: "M8"}


@dataclass(frozen=True)
class FollowUp:
    """What the model makes of a question that leans on earlier turns."""

    needs: tuple[int, ...]
    standalone: str
    from_history: str = ""
    """The answer that turns and passages give; ``""`` if they give none."""
    useful: tuple[int, ...] = ()


FOLLOW_UPS = {
    "And its oil?": FollowUp((1,), OIL),
    "Which colour has it?": FollowUp((1,), "Which colour has KS-1?", from_history="green", useful=(1,)),
}


class TalkingLLM(FakeLLM):
    """Plays the model of a conversation: ideal for what it knows, and with ``broken`` kinds of calls on request."""

    def __init__(self, follow_ups: Mapping[str, FollowUp] = FOLLOW_UPS) -> None:
        super().__init__(self._say)
        self._follow_ups = follow_ups
        self.kinds: list[str] = []
        self.broken: dict[str, Exception | str] = {}
        """Kind of call to what is raised, or said, instead."""

    def asked(self) -> list[str]:
        """The kinds of calls since it was last asked for them."""
        kinds, self.kinds = self.kinds, []
        return kinds

    def _say(self, messages: Sequence[Message]) -> str:
        kind = KINDS[messages[0][1]]
        self.kinds.append(kind)
        if kind in self.broken:
            told = self.broken[kind]
            if isinstance(told, Exception):
                raise told
            return told
        text = messages[-1][1]
        query = text.rpartition("\n")[2].partition(": ")[2]  # every prompt ends with the question
        return getattr(self, f"_{kind}")(query, text)

    def _read(self, query: str, text: str) -> str:
        known = [answer for question, answer in ANSWERS.items() if question == query and answer in text]
        return known[0] if known else REFUSAL

    def _select(self, query: str, text: str) -> str:
        return json.dumps({"turns": self._follow_ups[query].needs if query in self._follow_ups else []})

    def _assess(self, query: str, text: str) -> str:
        follow_up = self._follow_ups[query]
        answer = follow_up.from_history if follow_up.from_history in text else ""
        return json.dumps({"question": follow_up.standalone, "useful": list(follow_up.useful), "answer": answer})

    def _judge(self, query: str, text: str) -> str:
        """Scores by whether the passage holds the answer of a follow-up that history answers."""
        asked = text.partition("Query: ")[2].partition("\n")[0]
        answers = [each.from_history for each in self._follow_ups.values() if each.standalone == asked]
        holds = any(answer and answer in text for answer in answers)
        return json.dumps({"reason": "", "score": 2 if holds else 0, "next_query": ""})

    def _block(self, query: str, text: str) -> str:
        """Keeps the passages that hold the answer, and quotes it."""
        asked, _, passage = text.removeprefix("Query: ").partition("\n\nPassage:\n")
        answer = ANSWERS.get(asked, "?")
        is_needed = answer in passage
        return json.dumps({"belongs": is_needed, "key_passage": answer if is_needed else "", "reason": "so it is"})

    def _condense(self, query: str, text: str) -> str:
        return self._follow_ups[query].standalone if query in self._follow_ups else query

    def _knowledge(self, query: str, text: str) -> str:
        return "from memory"

    def _digest(self, query: str, text: str) -> str:
        return "KS-1 is green [1]"

    def _summary(self, query: str, text: str) -> str:
        return f"summary of {len(text)} characters"

    def _small_talk(self, query: str, text: str) -> str:
        is_small = query.startswith("Hello")
        return json.dumps({"small_talk": is_small, "reply": "Hello!" if is_small else ""})

    def _route(self, query: str, text: str) -> str:
        return json.dumps({"route": "web" if "weather" in query else "rag"})


class HangingRetriever(TableRetriever):
    """Finds nothing for ``CLASS`` until it is cancelled."""

    def __init__(self) -> None:
        super().__init__(TABLE)
        self.reached = threading.Event()

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        if query == CLASS:
            self.reached.set()
            await asyncio.Event().wait()
        return await super().asearch(query, meter=meter)


DOWN = ModelCallError("the model is down")


def settings_in(folder: Path, **changes: object) -> Settings:
    """Settings whose store is a SQLite file in a folder."""
    return load_settings(**{"home": folder, "checkpoints": f"sqlite:///{folder / 'c.sqlite'}", **changes})


def open_conversations(
    folder: Path,
    llm: FakeLLM,
    *,
    options: ConversationOptions | None = None,
    limits: TurnLimits | None = None,
    memory: TurnMemory | None = None,
    web: WebSearch | None = None,
    settings: Settings | None = None,
    retriever: TableRetriever | None = None,
    judge: Judge | None = None,
    **keys: object,
) -> Conversations:
    """Conversations with a real store and a real memory, both in a folder."""
    settings = settings or settings_in(folder)
    return Conversations(
        system="naive",
        context=RagContext(reader=llm, retriever=retriever or TableRetriever(TABLE), judge=judge),
        memory=memory or ConversationMemory(BagOfWordsEmbedder(), uri=settings.milvus_address),
        options=options,
        limits_of_prompts=limits,
        web=web,
        settings=settings,
        **keys,
    )


def saved(result: TurnResult) -> QaPair:
    """The turn of an answered question."""
    assert result.turn is not None, result.error
    return result.turn


def after_first_turn(talks: Conversations, llm: TalkingLLM | None = None) -> Conversation:
    """A conversation in which ``CLASS`` was asked; the model forgets that it was."""
    talk = talks.conversation("s")
    talk.ask(CLASS)
    if llm is not None:
        llm.asked()
    return talk
