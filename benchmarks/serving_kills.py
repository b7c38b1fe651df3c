"""Two server processes over one PostgreSQL and one Milvus server, killed at random moments in the midst of streams."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg

from judgetree.graphs.conversation.turn.store import turn_thread
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.record import INTERRUPTED
from judgetree.modules.memory.turns import QaPair, rag_thread_of
from judgetree.modules.settings import load_settings

from .corpus import COLLECTION, questions
from .measurement import Row
from .serving import running_of
from .streaming_clients import Client, Told, Traffic, chat, knowledge, page, talk
from .workers import Site, site

KILLS = 20
STREAMS = 50
"""Streams that are open at each kill, at least."""
EVENTS_A_STREAM = 10
"""Most events of a stream, on average, between a start and the next kill."""
LATENCY_S = 0.2
SEED = 23
_SPARE = 1.2
"""Clients for each stream that must be open: some are between two questions."""
_ENDING_S = 30.0
_UNANSWERED = "SELECT root, count(*) FROM judgetree_calls WHERE kept IS NULL GROUP BY root"
_LEFT_BEHIND = {
    "calls in the journal": "SELECT count(*) FROM judgetree_calls",
    "locks": "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
}


@dataclass(frozen=True, kw_only=True)
class Kill:
    """A killed worker."""

    open_streams: int
    """Of both workers."""
    conversations: frozenset[str]
    """Those that it was answering."""
    unanswered: Mapping[str, int]
    """Model calls without a saved reply, of both workers, by root thread."""


@dataclass(kw_only=True)
class Kept:
    """What the stores have at the end."""

    wrong_histories: list[str] = field(default_factory=list)
    """Conversations that do not have each answered question once, with the answer and the turn that clients know."""
    wrong_trees: list[str] = field(default_factory=list)
    turns: int = 0
    calls: int = 0
    """Model calls of all turns, those counted too that were in flight at a kill."""
    doubled: int = 0
    """Calls of searches that were made again though the reply to the first was saved."""
    owners: dict[str, str] = field(default_factory=dict)
    """Conversations by root thread of a turn's calls."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of the kills."""

    traffic: Traffic
    kills: Sequence[Kill]
    kept: Kept
    left_behind: Mapping[str, int]
    requests: int
    """Model calls that arrived."""

    @property
    def in_flight(self) -> int:
        """Model calls that a killed worker had begun and whose reply it had not saved."""
        owner = self.kept.owners.get
        return sum(
            number
            for kill in self.kills
            for root, number in kill.unanswered.items()
            if owner(root) in kill.conversations
        )

    @property
    def made_again(self) -> int:
        """Model calls that arrived beyond those whose replies were saved."""
        return self.requests - (self.kept.calls - self.in_flight) + self.kept.doubled


async def kill_often(traffic: Traffic, here: Site, kills: int, streams: int) -> list[Kill]:
    """Kill the worker with more streams and start it again, at moments that are random numbers of events apart."""
    made = []
    for _ in range(kills):
        await traffic.until(events=traffic.rng.randrange(streams * EVENTS_A_STREAM), open_streams=streams)
        worker = max(here.workers, key=lambda each: traffic.open_at[each.port])
        traffic.may_repeat.clear()  # so that nobody answers for the killed worker before its calls are counted
        asked = frozenset(name for name, port in traffic.asked_at.items() if port == worker.port)
        open_streams = traffic.open
        worker.kill()
        with psycopg.connect(here.settings["JUDGETREE_CHECKPOINTS"]) as database:
            unanswered = dict(database.execute(_UNANSWERED).fetchall())
        traffic.may_repeat.set()
        made.append(Kill(open_streams=open_streams, conversations=asked, unanswered=unanswered))
        await asyncio.to_thread(worker.start)
    return made


def clients_of(streams: int) -> list[tuple[str, Client]]:
    """Return the conversations that are led at the same time, by name: chats, knowledge chats and pages.

    A page has two streams: its question and the tree.
    """
    kinds: tuple[Client, ...] = (chat, knowledge, page, chat, knowledge)
    number = round(streams * _SPARE * len(kinds) / (len(kinds) + 1))
    made = [kinds[index % len(kinds)] for index in range(number)]
    return [(f"{kind.__name__}-{index}", kind) for index, kind in enumerate(made)]


async def lead(here: Site, kills: int, streams: int) -> Outcome:
    """Lead conversations while workers are killed, and compare what clients know with what is kept."""
    rng = random.Random(SEED)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=120, limits=limits) as http:
        traffic = Traffic(http=http, workers=here.workers, rng=rng)
        traffic.may_repeat.set()
        texts = [row.question for row in questions()]
        talks = [
            asyncio.create_task(talk(traffic, client, name, rng.sample(texts, len(texts))))
            for name, client in clients_of(streams)
        ]
        killing = asyncio.create_task(kill_often(traffic, here, kills, streams))
        await asyncio.wait([killing, *talks], return_when=asyncio.FIRST_COMPLETED)
        made = await killing
        traffic.is_ending = True
        await asyncio.gather(*talks)
        left_behind = await _left_behind(http, here)
    traffic.errors += [line for log in here.folder.glob("worker-*.log") for line in _said_in(log)]
    kept = await asyncio.to_thread(read_kept, here, traffic)
    requests = here.model.requests.total() - here.model.requests["embeddings"]
    return Outcome(traffic=traffic, kills=made, kept=kept, left_behind=left_behind, requests=requests)


def _said_in(log: Path) -> list[str]:
    """Return the lines of a worker's log besides that of each start."""
    return [line for line in log.read_text().splitlines() if line and not line.startswith("Serving on ")]


async def _left_behind(http: httpx.AsyncClient, here: Site) -> dict[str, int]:
    """Return what runs, is locked or is kept for a resumption once all clients are answered."""
    until = time.monotonic() + _ENDING_S  # the end of a question comes after its last event
    while running := sum([await running_of(http, worker) for worker in here.workers]):
        if time.monotonic() > until:
            break
        await asyncio.sleep(0.1)
    with psycopg.connect(here.settings["JUDGETREE_CHECKPOINTS"]) as database:
        rows = {what: database.execute(sql).fetchone() for what, sql in _LEFT_BEHIND.items()}
    return {"questions": running} | {what: int(row[0]) for what, row in rows.items() if row}


def read_kept(here: Site, traffic: Traffic) -> Kept:
    """Read every conversation and every watched tree from the stores, past the workers."""
    settings = load_settings(
        **{name.removeprefix("JUDGETREE_").lower(): value for name, value in here.settings.items()}
    )
    kept, trees = Kept(), {watched.thread_id: watched for watched in traffic.watched}
    with Conversations(COLLECTION, settings=settings) as conversations:
        opened = background_loop().run(conversations.services.open())
        for name, told in traffic.told.items():
            conversation = conversations.conversation(name)
            turns, conversation_id = conversation.turns(), conversation.conversation_id
            remembered = Counter(turn["turn_id"] for turn in opened.memory.turns_of(conversation_id))
            if not _is_whole(told, turns, remembered) or conversation.open_turn is not None:
                kept.wrong_histories.append(name)
            kept.turns += len(turns)
            for turn in turns:
                kept.calls += turn["usage"]["llm_calls"]
                root = rag_thread_of(conversation_id, turn["turn_id"])
                kept.owners |= {root: name, turn_thread(root): name}
                if (tree := conversation.search_tree(turn)) is None:
                    continue
                kept.doubled += _doubled_in(tree)
                watched = trees.get(turn["rag_thread_id"])
                if watched is not None and watched.tree != json.loads(tree.to_json()):
                    kept.wrong_trees.append(turn["rag_thread_id"])
    return kept


def _is_whole(told: Sequence[Told], turns: Sequence[QaPair], remembered: Mapping[str, int]) -> bool:
    """Return whether each answered question is one turn, in state and memory, as its client knows it."""
    expected = [(each.question, each.answer.strip(), each.turn_id) for each in told]
    found = [(turn["query"], turn["answer"].strip(), turn["turn_id"]) for turn in turns]
    return found == expected and remembered == dict.fromkeys((each.turn_id for each in told), 1)


def _doubled_in(tree: SearchTree) -> int:
    """Return the answered calls of a tree beyond one for each query, node and chunk: none needs a second one here."""
    answered = Counter(
        (query.thread_id, record["node"], record["chunk_id"])
        for query in tree.query_nodes()
        for record in query.paid
        if record["kind"] == "chat" and record["error"] != INTERRUPTED
    )
    return answered.total() - len(answered)


def rows_of(outcome: Outcome) -> list[Row]:
    """Return the table."""
    traffic, kept, watched = outcome.traffic, outcome.kept, outcome.traffic.watched
    fewest = min((kill.open_streams for kill in outcome.kills), default=0)
    told = [each for answers in traffic.told.values() for each in answers]
    repeated = Counter(each.kind for each in told if each.attempts > 1)
    faults = [fault for each in watched for fault in each.faults] + [
        f"tree {each.thread_id} did not end" for each in watched if not each.is_over
    ]
    broken = ", ".join(f"{number} {kind}" for kind, number in sorted(traffic.broken.items()))
    return [
        Row(
            "two workers killed (-9) in turn amid open streams: errors besides broken streams",
            _first_of(traffic.errors),
            "0",
            holds=not traffic.errors,
            note=f"{len(outcome.kills)} kills with {fewest} streams or more open; broken streams: {broken}",
        ),
        Row(
            "turns kept, of questions answered; conversations without one copy of each, as its client knows it",
            f"{kept.turns} of {len(told)}; {_first_of(kept.wrong_histories)}",
            "all; 0",
            holds=kept.turns == len(told) and not kept.wrong_histories,
            note=f"repeated {repeated['chat']} of chats, {repeated['knowledge']} of knowledge chats and "
            f"{repeated['page']} of pages",
        ),
        Row(
            "growing trees watched: events missing, doubled or needless; trees other than the finished thread's",
            f"{_first_of(faults)}; {_first_of(kept.wrong_trees)}",
            "0; 0",
            holds=not faults and not kept.wrong_trees,
            note=f"{len(watched)} trees, {sum(each.comebacks for each in watched)} streams continued by Last-Event-ID, "
            f"{sum(each.snapshots for each in watched)} sent whole again",
        ),
        Row(
            "model calls made again",
            f"{outcome.made_again} of {outcome.requests}",
            f"≤ {outcome.in_flight}, in flight at the kills",
            holds=outcome.made_again <= outcome.in_flight,
        ),
        Row(
            "left at the end",
            ", ".join(f"{number} {what}" for what, number in outcome.left_behind.items()),
            "0 of each",
            holds=not any(outcome.left_behind.values()),
        ),
    ]


def _first_of(found: Sequence[str]) -> str:
    return f"{len(found)} ({found[0]})" if found else "0"


def measure(*, kills: int = KILLS, streams: int = STREAMS) -> list[Row]:
    """Measure two workers; the scripted model and the clients share the cores with them."""
    with site(workers=2, latency_s=LATENCY_S) as here:
        return rows_of(asyncio.run(lead(here, kills, streams)))
