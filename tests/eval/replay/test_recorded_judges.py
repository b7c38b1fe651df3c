"""Recordings of all kinds of judges replay as these judges search live: calls, choices, and what readers see."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from langchain_core.documents import Document

from judgetree.evaluation.datasets.questions import Dataset, EvalQuestion
from judgetree.evaluation.replay.play import Episode, run_episode
from judgetree.evaluation.replay.recorder import record
from judgetree.evaluation.replay.recording import FILE_NAME, SearchRecording
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.search.stop import create_stop
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.batched import BatchedJudge
from judgetree.modules.judge.contract import AnyJudge, Score, SetVerdict, Verdict
from judgetree.modules.judge.embedding import EmbeddingJudge
from judgetree.modules.judge.thresholds import LogprobThresholds
from judgetree.modules.retriever.contract import ChunkRetriever
from tests.eval.replay.test_play import grants_of
from tests.graphs.bushy import ROOT, bushy_context, draw
from tests.graphs.fakes import FakeLLM, thread
from tests.modules.fake_embeddings import BagOfWordsEmbedder

TOPK = 4


@dataclass
class PerChunk:
    """Makes so many calls for a chunk as ``takes`` says of it, the first of all chunks before any second."""

    expects: int
    takes: range
    """Fewest and most calls."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "own"}

    def expected_calls(self, chunks: int) -> int:
        return self.expects * chunks

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        for _ in range(self.takes[int(draw("calls", chunk.metadata["chunk_id"]) * len(self.takes))]):
            await called(meter)
        return verdict_on(chunk)


class Together:
    """Makes one call for a set, says whether it suffices, and leaves some useful chunks without a question."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "own"}

    def expected_calls(self, chunks: int) -> int:
        return 1

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        await called(meter)
        verdicts = (
            replace(each, next_query="") if draw("silent", each.next_query) < 0.4 else each
            for each in map(verdict_on, chunks)
        )
        return SetVerdict(verdicts=tuple(verdicts), suffices=draw("set", query) < 0.3)


async def called(meter: CallMeter) -> None:
    await FakeLLM(lambda messages: "yes").complete([("user", "?")], meter=meter)


def verdict_on(chunk: Document) -> Verdict:
    chunk_id = chunk.metadata["chunk_id"]
    luck = draw(0, chunk_id)
    score: Score = 2 if luck < 0.05 else 1 if luck < 0.6 else 0
    question = chunk_id if score == 1 else ""
    return Verdict(status="judged", score=score, p_needed=draw("p", chunk_id), next_query=question)


def batch_reply(messages: Sequence[Message]) -> str:
    """Judge the numbered passages of a prompt; those with an odd number leave their question to another one."""
    passages = re.findall(r"\[(\d+)\]\ntext \d+ of (.+)", messages[1][1])
    entries = [
        {
            "passage": int(number),
            "score": 1 if int(number) % 2 or draw("batch", number, of) < 0.5 else 0,
            "percent": 50,
            "next_query": f"{of} {number}" if int(number) % 2 else "",
        }
        for number, of in passages
    ]
    return json.dumps({"reason": "", "suffices": draw("suffices", passages[0][1]) < 0.5, "passages": entries})


JUDGES: dict[str, AnyJudge] = {
    "free": PerChunk(0, range(1)),
    "one call a chunk": PerChunk(1, range(1, 2)),
    "more calls than expected": PerChunk(1, range(4)),
    "one call a set": Together(),
    "batched": BatchedJudge(FakeLLM(batch_reply)),
    "embedding": EmbeddingJudge(BagOfWordsEmbedder(), LogprobThresholds(needed=0.5)),
}


@dataclass
class Titled:
    """Gives chunks titles, of which the judge by similarity makes its questions."""

    inner: ChunkRetriever

    def fingerprint(self) -> dict[str, str]:
        return self.inner.fingerprint()

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        hits = await self.inner.asearch(query, meter=meter)
        for place, (chunk, _) in enumerate(hits):
            chunk.metadata["title"] = f"{'abcd'[place] * 3} {query[-3:]}"
        return hits


def context_of(judge: AnyJudge, calls: int, stop: str) -> RagContext:
    context = bushy_context("best_first", topk=TOPK, max_rec_depth=2, max_llm_calls=calls, width=1)
    assert context.retriever is not None
    return replace(context, judge=judge, stop=create_stop(stop), retriever=Titled(context.retriever))


def searched(context: RagContext) -> SearchTree:
    with build_judge_rag(context=context) as graph:
        graph.invoke(ROOT, thread("t"))
        return SearchTree.from_history(graph, "t")


def replayed(context: RagContext, folder: Path, *, gold: tuple[str, ...]) -> Episode:
    question = EvalQuestion(id="one", question=ROOT, answers=("an answer",), supporting=gold)
    dataset = Dataset(name="bushy", questions=(question,), key_field="chunk_id")
    recording = SearchRecording(folder / FILE_NAME, of={"judge.kind": "own", "depth": "2", "tries": "1"})
    record(dataset, recording, context, depth=2, max_llm_calls=1000)
    world = SearchRecording(folder / FILE_NAME).worlds()["one"]
    return run_episode(world, context.policy, context.stop, context.limits)


@pytest.mark.parametrize("stop", ["set", "any"])
@pytest.mark.parametrize("calls", [1, 2, 3, 7, 20, 200])
@pytest.mark.parametrize("judge", JUDGES)
def test_a_replay_pays_chooses_and_shows_as_the_live_search(tmp_path: Path, judge: str, calls: int, stop: str) -> None:
    context = context_of(JUDGES[judge], calls, stop)
    live = searched(context)
    found = tuple({chunk.chunk_id for query in live.query_nodes() for chunk in query.chunks})
    played = replayed(context, tmp_path, gold=found)
    assert played.calls == live.usage["llm_calls"]
    assert {each.candidate.next_query: (each.round, each.priority) for each in played.expansions} == grants_of(live)
    assert played.found == {chunk.chunk_id for query in live.query_nodes() for chunk in query.shown_chunks}
    assert played.misses == 0
