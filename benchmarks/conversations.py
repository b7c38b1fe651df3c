"""Conversations under load and over time: 50 at once on PostgreSQL against a slow model, and one of 500 turns."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from judgetree.graphs.conversation.turn.result import TurnResult
from judgetree.graphs.conversation.turn.store import conversation_thread
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.memory.prompts import ASSESS_SYSTEM, SELECT_SYSTEM
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import Settings
from tests.database_servers import milvus_lite_server, postgres_server

from .corpus import indexed_standards, settings_for
from .measurement import Row

CONVERSATIONS, TURNS, LATENCY_S = 50, 10, 1.0
CALLS_OF_FIRST, CALLS_OF_FOLLOW_UP = 1, 3
LONG_TURNS = 500
NO_MODEL = "http://127.0.0.1:9/v1"
"""No call reaches this address: the model is ``LeaningModel``."""
_NUMBER = re.compile(r"^Turn (\d+)$", re.MULTILINE)


class LeaningModel:
    """A model for which every question depends on the turn before; its answers repeat the question."""

    model = "leaning"

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self.calls = 0

    async def complete(self, messages: Sequence[Message], *, meter: CallMeter, **_: object) -> Completion:
        """Answer as ``ChatLLM.complete``, after the latency and with hardly any CPU."""
        meter.reserve()
        self.calls += 1
        started = time.perf_counter()
        await asyncio.sleep(self._latency_s)
        meter.record(kind="chat", model=self.model, started=started, prompt_tokens=100, completion_tokens=10)
        return Completion(text=self._reply(messages), thinking="", finish_reason="stop")

    def _reply(self, messages: Sequence[Message]) -> str:
        (_, system), (_, user) = messages
        asked = user.rpartition("\n")[2].partition(": ")[2]
        if system == SELECT_SYSTEM:
            return json.dumps({"turns": [int(_NUMBER.findall(user)[-1])]})
        if system == ASSESS_SYSTEM:
            return json.dumps({"question": f"{asked} Stand-alone.", "useful": [1], "answer": ""})
        return f"answer to {asked}"


def question_of(conversation: int, turn: int) -> str:
    """Make a question about the corpus that no other conversation asks."""
    topics = ("gasket", "ladder", "kiln shell", "brine pump", "settling tank", "flange", "coating", "weld test")
    return f"What does rule {turn} of plant {conversation} say of the {topics[turn % len(topics)]}?"


async def _talk(conversations: Conversations, number: int) -> list[TurnResult]:
    talk = conversations.conversation(f"plant-{number}")
    return [await talk.aask(question_of(number, turn)) for turn in range(1, TURNS + 1)]


async def _all_talk(conversations: Conversations) -> list[list[TurnResult]]:
    return await asyncio.gather(*(_talk(conversations, number) for number in range(CONVERSATIONS)))


def misplaced(conversations: Conversations) -> int:
    """Count the turns that are lost, doubled, out of order or in another conversation."""
    wrong = 0
    for number in range(CONVERSATIONS):
        history = conversations.conversation(f"plant-{number}").history()
        expected = [question_of(number, turn) for turn in range(1, TURNS + 1)]
        wrong += len(set(expected) ^ {turn["query"] for turn in history}) + abs(len(history) - TURNS)
        wrong += sum(turn["query"] != query for turn, query in zip(history, expected, strict=False))
    return wrong


def measure_load(settings: Settings) -> list[Row]:
    """Measure 50 conversations of 10 turns each, at once."""
    model = LeaningModel(LATENCY_S)
    with indexed_standards(settings) as index:
        services = RagContext(reader=model, retriever=Retriever(index, topk=3, search_type="hybrid"))
        with Conversations(system="naive", context=services, settings=settings) as conversations:
            conversations.conversation("warm-up").ask("What is a gasket?")
            cpu, wall = time.process_time(), time.perf_counter()
            results = asyncio.run(_all_talk(conversations))
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            failed = sum(result.status == "failed" for talk in results for result in talk)
            wrong = misplaced(conversations)
    ideal = LATENCY_S * (CALLS_OF_FIRST + (TURNS - 1) * CALLS_OF_FOLLOW_UP)
    turns = CONVERSATIONS * TURNS
    latency = f"{LATENCY_S:.0f} s latency"
    what = f"{CONVERSATIONS} conversations of {TURNS} turns at once, {latency}, PostgreSQL and a Milvus server"
    return [
        Row(f"{what}: lost, doubled or misplaced", str(wrong + failed), "0", holds=wrong + failed == 0),
        Row(
            f"{what}: wall / ideal",
            f"{wall / ideal:.2f}",
            "≤ 1.3",
            holds=wall <= 1.3 * ideal,
            values=(wall / ideal,),
            note=f"{wall:.1f} s / {ideal:.1f} s, {model.calls} calls",
        ),
        Row(
            f"{what}: CPU a turn, searches and embeddings included",
            f"{cpu / turns * 1000:.0f} ms",
            values=(cpu / turns * 1000,),
            unit="ms",
        ),
    ]


def measure_long(settings: Settings, store: Path) -> list[Row]:
    """Measure one conversation of 500 turns on SQLite, with a model without latency."""
    with indexed_standards(settings) as index:
        services = RagContext(reader=LeaningModel(0.0), retriever=Retriever(index, topk=3, search_type="hybrid"))
        with Conversations(system="naive", context=services, settings=settings) as conversations:
            talk = conversations.conversation("long")
            talk.ask("What is a gasket?")
            before = _bytes_of(store)
            seconds = [talk.ask(question_of(0, turn)).wall_s for turn in range(LONG_TURNS)]
            turns = len(talk.history())
            conversations.rag.close()  # so that the write-ahead log is folded in
    growth_mb = (_bytes_of(store) - before) / 1e6
    state_kb = _state_bytes(store) / 1e3
    last = sorted(seconds[-100:])
    what = f"one conversation of {LONG_TURNS} turns, SQLite"
    return [
        Row(
            f"{what}: a turn besides the model, median of the last 100",
            f"{last[50] * 1000:.0f} ms",
            "< 150 ms",
            holds=last[50] < 0.15,
            values=(last[50] * 1000,),
            unit="ms",
            note=f"95th percentile {last[95] * 1000:.0f} ms, {turns} turns kept",
        ),
        Row(f"{what}: the conversation's state", f"{state_kb:.0f} kB", "< 200 kB", state_kb < 200, (state_kb,), "kB"),
        Row(f"{what}: growth of the database", f"{growth_mb:.1f} MB", "< 50 MB", growth_mb < 50, (growth_mb,), "MB"),
    ]


def _bytes_of(store: Path) -> int:
    return sum(path.stat().st_size for path in store.parent.glob(store.name + "*"))


def _state_bytes(store: Path) -> int:
    """Return the size of the newest stored checkpoint of the conversation's thread."""
    with sqlite3.connect(store) as database:
        (size,) = database.execute(
            "SELECT length(checkpoint) FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id DESC LIMIT 1",
            (conversation_thread("long"),),
        ).fetchone()
    return int(size)


def measure() -> list[Row]:
    """Measure load, then length."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with postgres_server() as url, milvus_lite_server(folder / "served.db") as milvus:
            rows = measure_load(settings_for(folder, NO_MODEL, checkpoints=url, milvus_uri=milvus.uri))
        store = folder / "talk.sqlite"
        return [*rows, *measure_long(settings_for(folder, NO_MODEL, checkpoints=f"sqlite:///{store}"), store)]
