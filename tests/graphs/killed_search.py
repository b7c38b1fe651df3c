"""A bushy search in a process of its own, to be killed: ``python -m tests.graphs.killed_search URL POLICY …``."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from langchain_core.documents import Document

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.growing_text import Listeners
from judgetree.modules.calls.journaled import JournaledLLM
from judgetree.modules.calls.messages import CallOptions, Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.contract import Score, Verdict
from tests.graphs.bushy import ROOT, BushyJudge, BushyWriter, bushy_context, draw, outline
from tests.graphs.fakes import thread

LIMITS = {"max_rec_depth": 2, "max_llm_calls": 60}
LATENCY_S = 0.02


class RecordingLLM(JournaledLLM):
    """Answers what does not matter, after writing into a file that it was called."""

    model = "noted"
    endpoint = "noted"

    def __init__(self, calls: Path, last: int | None = None) -> None:
        self._calls = calls
        self._last = last

    async def _call(
        self, messages: Sequence[Message], meter: CallMeter, options: CallOptions, listeners: Listeners
    ) -> Completion:
        await meter.about_to_send()
        started = time.perf_counter()
        with self._calls.open("a") as file:
            file.write("called\n")
        if self._last is not None and self._calls.read_text().count("called") >= self._last:
            os._exit(9)
        await asyncio.sleep(LATENCY_S * (0.5 + draw(*messages)))
        meter.record(kind="chat", model=self.model, started=started, prompt_tokens=1, completion_tokens=1)
        return Completion(text="an answer", thinking="", finish_reason="stop")


@dataclass
class CallingJudge(BushyJudge):
    """Judges as in the bushy world, after a call."""

    llm: RecordingLLM | None = None

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        assert self.llm is not None
        await self.llm.complete([("user", f"judge {chunk.metadata['chunk_id']}")], meter=meter)
        chunk_id = chunk.metadata["chunk_id"]
        luck = draw(self.seed, chunk_id)
        score: Score = 2 if luck < self.suffices else 1 if luck < 0.6 else 0
        question = chunk_id if score == 1 and expand else ""
        return Verdict(status="judged", score=score, next_query=question, p_needed=draw("p", chunk_id))


@dataclass
class CallingWriter(BushyWriter):
    """Asks again as in the bushy world, after a call."""

    llm: RecordingLLM

    async def write(self, query: str, chunk: Document, tried: Sequence[str], *, meter: CallMeter) -> str:
        chunk_id = chunk.metadata["chunk_id"]
        await self.llm.complete([("user", f"write {chunk_id} {len(tried)}")], meter=meter)
        return f"{chunk_id}~{len(tried)}"


def search(
    url: str, policy: str, width: int, calls: Path, *, expansion: str = "sub_question", last_call: int | None = None
) -> dict[str, object]:
    """Run or resume the search, and return its outline; call ``last_call`` of all runs kills the process."""
    llm = RecordingLLM(calls, last_call)
    context = bushy_context(policy, topk=4, width=width, expansion=expansion, **LIMITS)
    assert isinstance(context.judge, BushyJudge)
    judge = CallingJudge(0, context.judge.timing, llm=llm)
    context = replace(context, reader=llm, judge=judge, writer=CallingWriter(llm))
    with build_judge_rag(checkpointer=url, context=context) as graph:
        graph.invoke(ROOT, thread("t"))
        tree = SearchTree.from_history(graph, "t")
    return outline(tree)


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    linking = {"expansion": sys.argv[5], "last_call": int(sys.argv[6])} if len(sys.argv) > 5 else {}
    search(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), **linking)  # type: ignore[arg-type]
    os._exit(0)
