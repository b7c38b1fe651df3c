"""Clients of several workers, which repeat at another worker what a broken connection has cut off."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import httpx
import jsonpatch

from .corpus import COLLECTION
from .workers import Worker, text_of

MODEL = f"{COLLECTION}/judge"
Json = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Event:
    """A server-sent event."""

    name: str
    """Field ``event``; ``""`` without one."""
    id: str
    data: str


@dataclass(frozen=True, kw_only=True)
class Told:
    """A question and its answer, as a client was told."""

    kind: str
    """Kind of the client: chat, knowledge or page."""
    question: str
    answer: str
    turn_id: str
    attempts: int


@dataclass(kw_only=True)
class Watched:
    """A search tree as its watcher keeps it."""

    thread_id: str
    tree: object = None
    number: int = 0
    """Number of the last event."""
    last_id: str = ""
    is_over: bool = False
    comebacks: int = 0
    """Times that the stream went on by its last event's id."""
    snapshots: int = 0
    """Of these, the times that the whole tree was sent again."""
    faults: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Traffic:
    """The streams of all clients."""

    http: httpx.AsyncClient
    workers: Sequence[Worker]
    rng: random.Random
    told: dict[str, list[Told]] = field(default_factory=dict)
    """Answers of each conversation, in order."""
    watched: list[Watched] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    broken: Counter[str] = field(default_factory=Counter)
    """Streams that broke off, by kind."""
    asked_at: dict[str, int] = field(default_factory=dict)
    """Port of the worker that answers a conversation now."""
    open_at: Counter[int] = field(default_factory=Counter)
    """Open streams, by the port of their worker."""
    is_ending: bool = False
    """Whether clients leave after their question."""
    may_repeat: asyncio.Event = field(default_factory=asyncio.Event)
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    _events: int = 0

    @property
    def open(self) -> int:
        """Number of open streams."""
        return self.open_at.total()

    async def until(self, *, events: int, open_streams: int) -> None:
        """Wait for further events, then for a moment in which so many streams are open."""
        wanted = self._events + events
        async with self._arrived:
            await self._arrived.wait_for(lambda: self._events >= wanted and self.open >= open_streams)

    async def repeated(self, attempt: Callable[[Worker], Awaitable[None]]) -> int:
        """Attempt at any worker, and at another one after each broken connection; returns the number of attempts."""
        worker, attempts = self.rng.choice(self.workers), 1
        while True:
            try:
                await attempt(worker)
            except httpx.TransportError:
                await self.may_repeat.wait()
                worker = self.rng.choice([each for each in self.workers if each is not worker])
                attempts += 1
            else:
                return attempts

    @asynccontextmanager
    async def stream(
        self,
        kind: str,
        worker: Worker,
        path: str,
        *,
        json: Json | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Open a stream: POST with a body, else GET."""
        method = "GET" if json is None else "POST"
        async with self.http.stream(method, f"{worker.url}{path}", json=json, headers=headers) as answer:
            if answer.status_code != 200:
                raise RuntimeError(f"HTTP {answer.status_code}: {(await answer.aread()).decode()}")
            self.open_at[worker.port] += 1
            try:
                yield self._events_of(answer)
            except httpx.TransportError:
                self.broken[kind] += 1
                raise
            finally:
                self.open_at[worker.port] -= 1

    async def _events_of(self, answer: httpx.Response) -> AsyncIterator[Event]:
        fields: dict[str, list[str]] = {}
        async for line in answer.aiter_lines():
            if line and not line.startswith(":"):
                name, _, value = line.partition(":")
                fields.setdefault(name, []).append(value.removeprefix(" "))
            elif fields:
                name, last_id, data = ("\n".join(fields.get(each, ())) for each in ("event", "id", "data"))
                fields = {}
                async with self._arrived:
                    self._events += 1
                    self._arrived.notify_all()
                yield Event(name=name, id=last_id, data=data)


async def talk(traffic: Traffic, client: Client, name: str, asked: Sequence[str]) -> None:
    """Ask the questions of one conversation, one after the other."""
    told = traffic.told.setdefault(name, [])
    for question in asked:
        if traffic.is_ending:
            return
        try:
            told.append(await client(traffic, name, question))
        except Exception as error:  # noqa: BLE001 - counted, whatever it is
            traffic.errors.append(f"{name}: {error!r}")
            return
        finally:
            traffic.asked_at.pop(name, None)


async def chat(traffic: Traffic, name: str, question: str) -> Told:
    """Ask as clients of OpenAI's API do: with the whole history, and an Idempotency-Key."""
    before = traffic.told[name]
    said = [text for each in before for text in (each.question, each.answer)] + [question]
    messages = [{"role": ("user", "assistant")[index % 2], "content": text} for index, text in enumerate(said)]
    body: Json = {"model": MODEL, "messages": messages, "stream": True, "chat_id": name}
    own: Json = {}

    async def attempt(worker: Worker) -> None:
        traffic.asked_at[name] = worker.port
        own.update(text="")
        key = {"Idempotency-Key": f"{name}-{len(before)}"}
        async with traffic.stream("chat", worker, "/v1/chat/completions", json=body, headers=key) as events:
            async for event in events:
                if event.data == "[DONE]":
                    return
                chunk = json.loads(event.data)
                if "error" in chunk:
                    raise RuntimeError(event.data)
                is_void = chunk.get("event", {}).get("type") == "replace"
                own["text"] = chunk["event"]["data"]["content"] if is_void else f"{own['text']}{text_of(chunk)}"
                own.update(chunk.get("judgetree", {}))
        raise RuntimeError("the stream ended without [DONE]")

    attempts = await traffic.repeated(attempt)
    return _told("chat", question, own, attempts)


async def knowledge(traffic: Traffic, name: str, question: str) -> Told:
    """Ask as clients of the knowledge chat do: the same question of the same session, until it is answered."""
    own: Json = {}

    async def attempt(worker: Worker) -> None:
        traffic.asked_at[name] = worker.port
        begun, own["text"] = own.get("turn_id"), ""
        body: Json = {"question": question, "session_id": name, "model_id": MODEL}
        async with traffic.stream("knowledge", worker, "/knowledge_chat_conversation", json=body) as events:
            is_restarted = False
            async for event in events:
                kind, _, text = event.data.partition(": ")
                is_restarted |= kind == "RESTART"
                match kind:
                    case "CONTENT":
                        own["text"] = f"{own['text']}{text}"
                    case "RESTART":
                        own["text"] = ""
                    case "SESSION" | "DONE":
                        own.update(json.loads(text))
                        if begun and (own["turn_id"] != begun or (kind == "DONE" and not is_restarted)):
                            raise RuntimeError(f"turn {begun} was not begun again but {own['turn_id']}")
                        if kind == "DONE":
                            return
                    case "ERROR":
                        raise RuntimeError(event.data)
        raise RuntimeError("the stream ended without DONE")

    attempts = await traffic.repeated(attempt)
    return _told("knowledge", question, own, attempts)


async def page(traffic: Traffic, name: str, question: str) -> Told:
    """Ask as the page does, and watch the tree grow beside the question's own stream."""
    own: Json = {}
    watching: dict[str, asyncio.Task[None]] = {}
    body: Json = {"model": MODEL, "question": question, "request_id": f"{name}-{len(traffic.told[name])}"}

    async def attempt(worker: Worker) -> None:
        traffic.asked_at[name] = worker.port
        async with traffic.stream("page", worker, f"/v1/conversations/{name}/questions", json=body) as events:
            async for event in events:
                document = json.loads(event.data)
                thread = document.get("event", {}).get("root_thread_id")
                if thread and thread not in watching:
                    watching[thread] = asyncio.create_task(watch(traffic, thread))
                if event.name == "error":
                    raise RuntimeError(event.data)
                if event.name == "done":
                    own.update(text=document["answer"], turn_id=document["turn_id"], status=document["status"])
                    return
        raise RuntimeError("the stream ended without done")

    try:
        attempts = await traffic.repeated(attempt)
        await asyncio.gather(*watching.values())
    finally:
        for task in watching.values():
            task.cancel()
    return _told("page", question, own, attempts)


Client = Callable[[Traffic, str, str], Awaitable[Told]]


def _told(kind: str, question: str, own: Json, attempts: int) -> Told:
    if own.get("status") == "failed":
        raise RuntimeError(f"the turn failed: {own}")
    return Told(kind=kind, question=question, answer=str(own["text"]), turn_id=str(own["turn_id"]), attempts=attempts)


async def watch(traffic: Traffic, thread_id: str) -> None:
    """Keep a tree that grows; come back by the last event's id after each broken connection."""
    watched = Watched(thread_id=thread_id)
    traffic.watched.append(watched)
    await traffic.repeated(partial(_watch_at, traffic, watched))


async def _watch_at(traffic: Traffic, watched: Watched, worker: Worker) -> None:
    headers = {"Last-Event-ID": watched.last_id} if watched.last_id else {}
    is_comeback = bool(headers)
    path = f"/v1/trees/{watched.thread_id}/events?wait=30"
    async with traffic.stream("tree", worker, path, headers=headers) as events:
        async for event in events:
            if event.name == "error":
                raise RuntimeError(event.data)
            if is_comeback:
                watched.comebacks += 1
                watched.snapshots += event.name == "snapshot"
            take(watched, event, is_comeback=is_comeback)
            is_comeback = False
            if watched.is_over:
                return
    raise RuntimeError("the stream of a tree ended without end")


def take(watched: Watched, event: Event, *, is_comeback: bool) -> None:
    """Apply an event to the tree, and note what is wrong with it."""
    number, data = int(event.id.partition("-")[0]), json.loads(event.data)
    if number != watched.number + (event.name != "end"):
        watched.faults.append(f"event {number} after {watched.number}")
    match event.name:
        case "snapshot":
            if watched.last_id and (not is_comeback or data == watched.tree):
                watched.faults.append("a snapshot of what was known")
            watched.tree = data
        case "delta":
            watched.tree = jsonpatch.apply_patch(watched.tree, cast(list[object], data))
        case "end":
            watched.is_over = True
    watched.number, watched.last_id = number, event.id
