"""A bushy world whose judge and reader make model calls that use tokens, cost money, take turns and may fail."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.documents import Document

from judgetree.graphs.config.limits import Limits
from judgetree.graphs.search.policies.registry import create_policy
from judgetree.graphs.search.stop import create_stop
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.growing_text import Listeners
from judgetree.modules.calls.journaled import JournaledLLM
from judgetree.modules.calls.messages import CallOptions, Message
from judgetree.modules.calls.prices import Price, Prices
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError
from judgetree.modules.judge.contract import Score, Verdict
from tests.graphs.bushy import BushyRetriever, BushyWriter, Timing, draw

PRICES = Prices({"chat": {"priced": Price(prompt=1, completion=2), "bushy": Price(prompt=0, completion=0)}})
JUDGING = CallOptions(max_tokens=40)
SUFFICES = "2"


@dataclass
class PricedLLM(JournaledLLM):
    """Replies what the place of a call decides, in so many tokens as were allowed at most."""

    seed: int
    timing: Timing
    faults: float = 0.0
    excess: float = 0.0
    """Share by which prompts have more tokens than their estimate."""
    made: int = 0
    running: int = 0
    most_running: int = 0
    times: Counter[str] = field(default_factory=Counter)
    held: asyncio.Event | None = None
    """What calls wait for once they were sent."""

    model = "priced"
    endpoint = "priced"

    async def _call(
        self, messages: Sequence[Message], meter: CallMeter, options: CallOptions, listeners: Listeners
    ) -> Completion:
        await self.timing.wait()
        await meter.about_to_send()
        started, text = time.perf_counter(), messages[-1][1]
        self.made += 1
        self.times[text] += 1
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            await self.timing.wait()
            if self.held is not None:
                await self.held.wait()
        finally:
            self.running -= 1
        luck = draw(self.seed, text)
        prompt = round(message_tokens(messages) * (1 + self.excess))
        if draw("fault", self.seed, text, self.times[text]) < self.faults:
            meter.record(kind="chat", model=self.model, started=started, error="refused")
            raise ModelCallError("the endpoint failed")
        written = round(1 + luck * ((options.max_tokens or 256) - 1))
        meter.record(kind="chat", model=self.model, started=started, prompt_tokens=prompt, completion_tokens=written)
        return Completion(text="an answer", finish_reason="stop")


@dataclass
class PricedJudge:
    """Draws verdicts by the seed, after a call of the model."""

    llm: PricedLLM
    suffices: float = 0.05

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "priced", "seed": str(self.llm.seed), "suffices": str(self.suffices)}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        chunk_id = chunk.metadata["chunk_id"]
        await self.llm.complete([("system", "judge"), ("user", chunk_id)], meter=meter, options=JUDGING)
        luck = draw(self.llm.seed, "verdict", chunk_id)
        score: Score = 2 if luck < self.suffices else 1 if luck < 0.7 else 0
        question = chunk_id if score == 1 and expand else ""
        return Verdict(status="judged", score=score, next_query=question, p_needed=draw("p", chunk_id))


def priced_context(
    policy: str = "breadth",
    *,
    seed: int = 0,
    timing: int = 0,
    topk: int = 3,
    faults: float = 0.0,
    excess: float = 0.0,
    suffices: float = 0.05,
    stop: str = "set",
    **limits: float | None,
) -> RagContext:
    """The context of a judge graph in this world."""
    pace = Timing(timing)
    llm = PricedLLM(seed, pace, faults, excess)
    return RagContext(
        reader=llm,
        retriever=BushyRetriever(topk, pace),
        judge=PricedJudge(llm, suffices),
        writer=BushyWriter(),
        policy=create_policy(policy),
        stop=create_stop(stop),
        prices=PRICES,
        limits=Limits(**limits),  # type: ignore[arg-type]
    )


def llm_of(context: RagContext) -> PricedLLM:
    """The model of a context."""
    assert isinstance(context.reader, PricedLLM)
    return context.reader
