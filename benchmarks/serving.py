"""Two server processes over one PostgreSQL and one Milvus server: latency with open streams, CPU, leaving clients."""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.modules.settings import load_settings

from .corpus import COLLECTION, questions
from .measurement import Row
from .throughput import critical_path_s
from .workers import Site, Worker, body_of, chunks_of, site, text_of

LATENCY_S = 0.2
OPEN_STREAMS = 200
WARM_UP = 20
CAPACITY_QUESTIONS, CAPACITY_CLIENTS = 300, 48
LOAD_S = 60.0
LEAVING = 200
_HELD = "Hold this question."


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A streamed answer, as its client saw it."""

    first_text_s: float
    """Seconds to the first text of the answer, which is neither a role nor a heartbeat."""
    thread_id: str
    error: str = ""


class Holding:
    """A hook of the scripted model that answers certain questions only once it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def __call__(self, request: ReceivedRequest) -> ChatReply | None:
        if _HELD in request.prompt.query:
            self.opened.wait()
        return None


async def ask(client: httpx.AsyncClient, worker: Worker, question: str) -> Answered:
    """Ask in a conversation of its own, and read the answer to its end."""
    began, first, last = time.perf_counter(), 0.0, {}
    async with client.stream("POST", f"{worker.url}/v1/chat/completions", json=body_of(question)) as answer:
        if answer.status_code != 200:
            return Answered(first_text_s=0, thread_id="", error=(await answer.aread()).decode())
        async for chunk in chunks_of(answer):
            if not first and text_of(chunk):
                first = time.perf_counter() - began
            last = chunk
    own = last.get("judgetree")
    if not isinstance(own, dict) or not first:
        return Answered(first_text_s=0, thread_id="", error=str(last.get("error", "no answer")))
    return Answered(first_text_s=first, thread_id=str(own["thread_id"]))


@asynccontextmanager
async def held_streams(client: httpx.AsyncClient, workers: Iterable[Worker], number: int) -> AsyncIterator[None]:
    """Keep streams open, whose questions wait for their model."""
    turns = itertools.cycle(workers)
    async with AsyncExitStack() as stack:
        for index in range(number):
            body = body_of(f"{_HELD} {index}") | {"model": f"{COLLECTION}/naive"}
            opened = client.stream("POST", f"{next(turns).url}/v1/chat/completions", json=body)
            answer = await stack.enter_async_context(opened)
            assert answer.status_code == 200
        yield


async def closed_loop(client: httpx.AsyncClient, here: Site, asked: Iterable[str], clients: int) -> list[Answered]:
    """Ask questions by a number of clients, each of which asks again once it is answered."""
    waiting, answers = iter(asked), list[Answered]()

    async def one(worker: Worker) -> None:
        for question in waiting:
            answers.append(await ask(client, worker, question))

    await asyncio.gather(*(one(here.workers[index % len(here.workers)]) for index in range(clients)))
    return answers


async def open_loop(
    client: httpx.AsyncClient, here: Site, asked: Iterator[str], rate: float, seconds: float
) -> list[Answered]:
    """Ask at random moments, ``rate`` questions a second on average, whether or not earlier ones are answered."""
    rng, running, turns = random.Random(7), list[asyncio.Task[Answered]](), itertools.cycle(here.workers)
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        running.append(asyncio.create_task(ask(client, next(turns), next(asked))))
        await asyncio.sleep(rng.expovariate(rate))
    return list(await asyncio.gather(*running))


async def path_s(client: httpx.AsyncClient, worker: Worker, thread_id: str) -> float:
    """Return the latencies of the calls on a tree's longest path."""
    tree = await client.get(f"{worker.url}/v1/trees/{thread_id}", params={"format": "json"})
    return critical_path_s(SearchTree.from_json(tree.raise_for_status().text), latency_s=LATENCY_S)


def graph_cpu_s(here: Site, asked: list[str]) -> float:
    """Return the CPU seconds a question without a server, in this process: the same conversations, stores and model."""
    settings = load_settings(
        **{name.removeprefix("JUDGETREE_").lower(): value for name, value in here.settings.items()}
    )

    async def run(conversations: Conversations) -> None:
        slots = asyncio.Semaphore(CAPACITY_CLIENTS)

        async def one(question: str) -> None:
            async with slots:
                async for _ in conversations.conversation(uuid.uuid4().hex).astream(question, parent_turn_id=""):
                    pass

        await asyncio.gather(*map(one, asked))

    with Conversations(COLLECTION, settings=settings) as conversations:
        conversations.conversation("warm").ask(asked[0])
        cpu = time.process_time()
        asyncio.run(run(conversations))
        return (time.process_time() - cpu) / len(asked)


async def leaving(client: httpx.AsyncClient, here: Site, number: int) -> tuple[int, int]:
    """Leave streams in mid-answer; returns the model calls that came over a second later, and open runs at the end."""
    rng, late = random.Random(11), 0
    for index in range(number):
        worker = here.workers[index % len(here.workers)]
        question = rng.choice(questions()).question
        async with client.stream("POST", f"{worker.url}/v1/chat/completions", json=body_of(question)) as answer:
            await anext(chunks_of(answer))
            await asyncio.sleep(rng.uniform(0, 3 * LATENCY_S))
        await asyncio.sleep(1.0)
        before = here.model.requests.total()
        await asyncio.sleep(2 * LATENCY_S)
        late += here.model.requests.total() - before
    return late, sum([await running_of(client, worker) for worker in here.workers])


async def running_of(client: httpx.AsyncClient, worker: Worker) -> int:
    """Return the questions that a worker is answering, by its metrics."""
    for line in (await client.get(f"{worker.url}/metrics")).raise_for_status().text.splitlines():
        if line.startswith("judgetree_running_questions "):
            return int(float(line.split()[1]))
    raise LookupError("the metrics have no judgetree_running_questions")


async def _measure(here: Site, holding: Holding) -> list[Row]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    asked = itertools.cycle([row.question for row in questions()])
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:
        await closed_loop(client, here, itertools.islice(asked, WARM_UP), clients=4)
        cpu, began = sum(worker.cpu_s for worker in here.workers), time.perf_counter()
        closed = await closed_loop(client, here, itertools.islice(asked, CAPACITY_QUESTIONS), CAPACITY_CLIENTS)
        capacity = len(closed) / (time.perf_counter() - began)
        cpu = (sum(worker.cpu_s for worker in here.workers) - cpu) / len(closed)
        async with held_streams(client, here.workers, OPEN_STREAMS):
            loaded = await open_loop(client, here, asked, capacity / 2, LOAD_S)
            holding.opened.set()
        answered = [each for each in loaded if not each.error]
        paths = [await path_s(client, here.workers[0], each.thread_id) for each in answered]
        late, running = await leaving(client, here, LEAVING)
    graph_s = await asyncio.to_thread(graph_cpu_s, here, list(itertools.islice(asked, CAPACITY_QUESTIONS)))
    over = sorted(each.first_text_s - path for each, path in zip(answered, paths, strict=True))
    p95 = over[int(len(over) * 0.95)]
    errors = [each.error for each in [*closed, *loaded] if each.error]
    return [
        Row(
            f"capacity with {CAPACITY_CLIENTS} clients",
            f"{capacity:.1f} questions a second",
            values=(capacity,),
            unit="questions a second",
            note=f"{CAPACITY_QUESTIONS} questions",
        ),
        Row(
            f"{OPEN_STREAMS} streams open, questions at half the capacity: errors",
            f"{len(errors)} {errors[:1] or ''}".strip(),
            "0",
            holds=not errors,
            note=f"{len(loaded)} questions at {capacity / 2:.1f} a second",
        ),
        Row(
            f"{OPEN_STREAMS} streams open: first text of the answer above the latencies of its calls, 95th percentile",
            f"{p95:.2f} s",
            "< 1.5 s",
            holds=p95 < 1.5,
            values=(p95,),
            unit="s",
            note=f"median {statistics.median(over):.2f} s",
        ),
        Row(
            "CPU a request at capacity besides the conversation's own",
            f"{(cpu - graph_s) * 1000:.1f} ms",
            "< 15 ms",
            holds=cpu - graph_s < 0.015,
            values=((cpu - graph_s) * 1000,),
            unit="ms",
            note=f"the conversation's own {graph_s * 1000:.1f} ms",
        ),
        Row(
            f"{LEAVING} clients gone in mid-stream: model calls over a second later, questions that still run",
            f"{late}, {running}",
            "0, 0",
            holds=(late, running) == (0, 0),
        ),
    ]


def measure() -> list[Row]:
    """Measure two workers; the scripted model and the clients share the cores with them."""
    holding = Holding()
    with site(workers=2, latency_s=LATENCY_S, responses=holding) as here:
        return asyncio.run(_measure(here, holding))
