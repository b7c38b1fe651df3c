"""A world whose search trees are as bushy as one likes: every query finds chunks, whose verdicts a seed decides."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from langchain_core.documents import Document

from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.search.policies.registry import POLICIES, create_policy
from judgetree.graphs.search.policy import Policy
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.contract import Score, Verdict
from judgetree.modules.retriever.linked_chunks import LinkedChunk
from tests.graphs.fakes import FakeLLM, chunk

ROOT = "q"
RUNNABLE = [name for name in POLICIES if name != "treequest" or find_spec("treequest")]
"""Policies whose libraries are there."""


def draw(*place: object) -> float:
    """A number in [0, 1) that only the place decides."""
    return int.from_bytes(hashlib.sha256(repr(place).encode()).digest()[:6]) / 2**48


@dataclass
class Timing:
    """Waits so many passes of the event loop as its seed says, so that runs differ in what ends first."""

    seed: int

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    async def wait(self) -> None:
        for _ in range(self._random.randrange(12)):
            await asyncio.sleep(0)


@dataclass
class BushyRetriever:
    """Finds ``topk`` chunks of its own for every query."""

    topk: int
    timing: Timing

    def fingerprint(self) -> dict[str, str]:
        return {"collection": "bushy", "topk": str(self.topk)}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        await self.timing.wait()
        return [
            (chunk(f"{query}/{number}", f"text {number} of {query}"), 1 - number / 10) for number in range(self.topk)
        ]


@dataclass
class BushyJudge:
    """Draws verdicts by the seed; most chunks are needed, few suffice. Its calls pass the meter."""

    seed: int
    timing: Timing
    suffices: float = 0.05
    topics: int | None = None
    """Number of questions that chunks ask, so that they repeat; None: each chunk asks its own."""
    made: int = 0
    wording: bool = False
    """Whether each chunk asks in words of its own."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "bushy", "seed": str(self.seed), "suffices": str(self.suffices), "topics": str(self.topics)}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        meter.reserve()
        started = time.perf_counter()
        self.made += 1
        await self.timing.wait()
        meter.record(kind="chat", model="bushy", started=started)
        chunk_id = chunk.metadata["chunk_id"]
        luck = draw(self.seed, chunk_id)
        score: Score = 2 if luck < self.suffices else 1 if luck < 0.6 else 0
        question = self._question(chunk_id) if score == 1 and expand else ""
        return Verdict(status="judged", score=score, next_query=question, p_needed=draw("p", chunk_id))

    def _question(self, chunk_id: str) -> str:
        if self.topics is None:
            return chunk_id
        topic = int(draw("topic", self.seed, chunk_id) * self.topics)
        if self.wording:
            return f"Topic {topic}, {'abc'[int(draw('words', chunk_id) * 3)]}?"
        return (f"Topic {topic}?", f"topic  {topic}")[draw("words", chunk_id) < 0.5]  # in two spellings


@dataclass
class BushyLinks:
    """Links each chunk with two of its own, and with the next hit of its query, which closes circles."""

    timing: Timing

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "bushy"}

    async def linked(self, chunk_ids: Sequence[str], *, without: Collection[str], most: int) -> list[LinkedChunk]:
        await self.timing.wait()
        found: dict[str, str] = {}
        for chunk_id in chunk_ids:
            query, _, number = chunk_id.rpartition("/")
            for other in (f"{query}/{int(number.split('>')[0]) + 1}", f"{chunk_id}>0", f"{chunk_id}>1"):
                if other not in without and len(found) < most:
                    found.setdefault(other, chunk_id)
        return [
            LinkedChunk(chunk=chunk(each, f"text of {each}"), linked_from=start, name="a title")
            for each, start in found.items()
        ]


@dataclass
class BushyWriter:
    """Asks a chunk again by the number of the try."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "bushy"}

    async def write(self, query: str, chunk: Document, tried: Sequence[str], *, meter: CallMeter) -> str:
        meter.reserve()
        meter.record(kind="chat", model="bushy", started=time.perf_counter())
        return f"{chunk.metadata['chunk_id']}~{len(tried)}"


def bushy_context(
    policy: str | Policy,
    *,
    seed: int = 0,
    timing: int = 0,
    topk: int = 3,
    suffices: float = 0.05,
    topics: int | None = None,
    **limits: int | str | None,
) -> RagContext:
    """The context of a judge graph in this world."""
    pace = Timing(timing)
    return RagContext(
        reader=FakeLLM(lambda messages: "an answer"),
        retriever=BushyRetriever(topk, pace),
        judge=BushyJudge(seed, pace, suffices, topics),
        writer=BushyWriter(),
        links=BushyLinks(pace),
        policy=create_policy(policy),
        limits=Limits(**limits),  # type: ignore[arg-type]
    )


def outline(tree: SearchTree) -> dict[str, object]:
    """What a search decided: of each chunk its verdict, its grant or why it was skipped, and its tries."""
    return {
        f"{node.query} > {each.chunk_id}": (
            each.verdict_label,
            each.granted_in,
            each.skipped,
            each.shared_thread_id,
            [(one["query"], one["round"], one["priority"], one["error"]) for one in each.tries],
        )
        for node in tree.query_nodes()
        for each in node.chunks
    }
