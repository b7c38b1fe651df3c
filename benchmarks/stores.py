"""SQLite, PostgreSQL and Redis side by side: what turns of conversations and search trees cost in each.

The stores take turns, so that what else the machine does meets all of them alike; a figure is the median of the rounds.
No model and no memory: what is measured is the store, and what judgetree itself does for a turn.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis

from judgetree.evaluation.runs.turn_asker import NoMemory
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.systems.judge_rag import build_judge_rag
from tests.database_servers import postgres_server, redis_server
from tests.graphs.bushy import ROOT, bushy_context
from tests.graphs.conversation.talk import CLASS, OIL, SCREW, TalkingLLM, open_conversations, settings_in
from tests.graphs.fakes import thread

from .measurement import Row

ROUNDS, CONVERSATIONS, TURNS, QUESTIONS = 5, 6, 8, 6
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Store:
    """A store that is measured."""

    url: str
    used_bytes: Callable[[], int]
    server_cpu_s: Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Round:
    """What one round cost in one store."""

    turns_per_s: float
    turn_cpu_ms: float
    """CPU of this process and of the server."""
    turn_bytes: float
    question_cpu_ms: float


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, Store]]:
    """Start the servers, and give the three stores."""
    file = folder / "c.sqlite"
    with ExitStack() as stack:
        postgres = stack.enter_context(postgres_server())
        server = stack.enter_context(redis_server(folder / "redis"))
        client = stack.enter_context(redis.Redis.from_url(server.url))
        postmaster = int((folder / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
        yield {
            "SQLite": Store(
                url=f"sqlite:///{file}",
                used_bytes=lambda: sum(each.stat().st_size for each in folder.glob("c*sqlite*") if each.is_file()),
                server_cpu_s=lambda: 0.0,
            ),
            "PostgreSQL": Store(
                url=postgres,
                used_bytes=lambda: _postgres_bytes(postgres),
                server_cpu_s=lambda: _cpu_s(postmaster),
            ),
            "Redis": Store(
                url=server.url,
                used_bytes=lambda: int(client.info("memory")["used_memory"]),  # type: ignore[index]
                server_cpu_s=lambda: _cpu_s(server.pid),
            ),
        }


def measured(store: Store, folder: Path, number: int) -> Round:
    """Lead conversations at once, then ask questions one after the other."""
    settings = settings_in(folder, checkpoints=store.url)
    before = store.used_bytes()
    with open_conversations(folder, TalkingLLM(), memory=NoMemory(), settings=settings) as talks:
        talks.conversation(f"warm-up {number}").ask(CLASS)
        cpu, wall = _all_cpu_s(store), time.perf_counter()
        asyncio.run(_all_talk(talks, number))
        wall, cpu = time.perf_counter() - wall, _all_cpu_s(store) - cpu
    kept = store.used_bytes() - before
    context = bushy_context("best_first", max_rec_depth=2, max_llm_calls=40)
    with build_judge_rag(checkpointer=store.url, context=context) as graph:
        graph.invoke(ROOT, thread(f"warm-up {number}"))
        asking = _all_cpu_s(store)
        for each in range(QUESTIONS):
            graph.invoke(ROOT, thread(f"{number}.{each}"))
        asking = _all_cpu_s(store) - asking
    turns = CONVERSATIONS * TURNS
    return Round(
        turns_per_s=turns / wall,
        turn_cpu_ms=cpu / turns * 1000,
        turn_bytes=kept / turns,
        question_cpu_ms=asking / QUESTIONS * 1000,
    )


async def _all_talk(talks: Conversations, number: int) -> None:
    async def talk(name: str) -> None:
        for turn in range(TURNS):
            result = await talks.conversation(name).aask((CLASS, OIL, SCREW)[turn % 3])
            assert result.status == "answered", result.error

    await asyncio.gather(*(talk(f"{number}.{each}") for each in range(CONVERSATIONS)))


def measure() -> list[Row]:
    """Measure turns and questions in each store, in turn."""
    with tempfile.TemporaryDirectory() as place, stores(Path(place)) as all_stores:
        rounds: dict[str, list[Round]] = {kind: [] for kind in all_stores}
        for number in range(ROUNDS):
            for kind, store in all_stores.items():
                rounds[kind].append(measured(store, Path(place) / "homes" / kind, number))
    rows = []
    for kind, own in rounds.items():
        base = rounds["SQLite"]
        for what, name, unit in (
            ("turns a second", "turns_per_s", ""),
            ("CPU a turn, the server's included", "turn_cpu_ms", "ms"),
            ("bytes a turn", "turn_bytes", "kB"),
            ("CPU a question, the server's included", "question_cpu_ms", "ms"),
        ):
            values = [getattr(each, name) / (1000 if unit == "kB" else 1) for each in own]
            ratio = statistics.median(getattr(a, name) / getattr(b, name) for a, b in zip(own, base, strict=True))
            rows.append(
                Row(
                    f"Checkpoints in {kind}, {CONVERSATIONS} conversations at once: {what}",
                    f"{statistics.median(values):.3g}{unit and f' {unit}'}; {ratio:.2f} of SQLite's",
                    values=(ratio, *values),
                    unit="",
                    note=f"{ROUNDS} alternating rounds, {min(values):.3g} to {max(values):.3g}{unit and f' {unit}'}",
                )
            )
    return rows


def _all_cpu_s(store: Store) -> float:
    return time.process_time() + store.server_cpu_s()


def _cpu_s(pid: int) -> float:
    """CPU time of a process, of its children, and of those that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(stat.parent.name) == pid:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == pid:
            ticks += sum(map(int, fields[11:13]))
    return ticks / _TICKS


def _postgres_bytes(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])
