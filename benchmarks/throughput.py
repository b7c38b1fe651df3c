"""200 judge questions at once against a model of half a second's latency: wall time against the ideal, CPU per call."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judgetree.evaluation.datasets.standards_qa import Question
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.result import RagResult
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.tree.nodes import QueryNode
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.factory import create_judge
from judgetree.modules.judge.prompts import judge_messages
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import Settings

from .corpus import COLLECTION, DATA, indexed_standards, questions, settings_for
from .measurement import Row

LATENCY_S = 0.5
CALLS_AT_ONCE = 32
QUESTIONS = 200


@contextmanager
def scripted_process(latency_s: float) -> Iterator[str]:
    """Run the scripted server in a process of its own, whose CPU is not counted; yields its base URL."""
    command = [sys.executable, "-m", "judgetree.app.scripted.server"]
    command += ["--questions", str(DATA / "standards_qa.jsonl"), "--latency", str(latency_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["base_url"])
        finally:
            process.terminate()


def critical_path_s(tree: SearchTree, *, latency_s: float = LATENCY_S) -> float:
    """Return the least seconds for the longest chain of calls in a tree: judge, sub-runs, answer."""

    def calls(node: QueryNode) -> int:
        judged = any(chunk.verdict == "judged" for chunk in node.chunks)
        below = [calls(sub_run) for chunk in node.chunks for sub_run in chunk.sub_runs]
        return judged + max(below, default=0) + 1

    return calls(tree.root) * latency_s


async def _run(session: RagSession, rows: list[Question]) -> list[RagResult]:
    asked = [session.aask(row.question, repeat=number) for number, row in enumerate(rows)]
    return list(await asyncio.gather(*asked))


async def _retrieve(retriever: Retriever, queries: list[str]) -> None:
    await asyncio.gather(*(retriever.asearch(query, meter=CallMeter(node="retrieve")) for query in queries))


def measure_depth(depth: int, settings: Settings, retriever: Retriever) -> list[Row]:
    """Measure wall and CPU time of ``QUESTIONS`` questions at one depth."""
    rows = list(itertools.islice(itertools.cycle(questions()), QUESTIONS))
    gate = CallGate(CALLS_AT_ONCE)
    llm = create_llm(settings.llm_spec, settings, gate)
    judge = create_judge("generated", llm, spec=settings.llm_spec)
    context = RagContext(reader=llm, retriever=retriever, judge=judge, limits=Limits(max_rec_depth=depth))
    with RagSession(system="judge", context=context, settings=settings) as session:
        session.ask(rows[0].question)  # imports, connections, the endpoint's probe
        cpu, wall = time.process_time(), time.perf_counter()
        results = asyncio.run(_run(session, rows))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    queries = [node.query for result in results for node in result.tree.query_nodes()]
    retrieval_cpu = time.process_time()
    asyncio.run(_retrieve(retriever, queries))
    retrieval_cpu = time.process_time() - retrieval_cpu
    calls = sum(result.usage["llm_calls"] for result in results)
    ideal = max(*(critical_path_s(result.tree) for result in results), calls * LATENCY_S / CALLS_AT_ONCE)
    per_call_ms = (cpu - retrieval_cpu) / calls * 1000
    what = f"{QUESTIONS} judge questions, depth {depth}"
    return [
        Row(
            f"{what}: wall / ideal",
            f"{wall / ideal:.2f}",
            "≤ 1.25",
            holds=wall <= 1.25 * ideal,
            values=(wall / ideal,),
            note=f"{wall:.1f} s / {ideal:.1f} s, {calls} calls, {len(queries)} retrievals",
        ),
        Row(
            f"{what}: CPU a model call, besides retrieval",
            f"{per_call_ms:.1f} ms",
            "≤ 8 ms",
            holds=per_call_ms <= 8,
            values=(per_call_ms,),
            unit="ms",
            note=f"a retrieval {retrieval_cpu / len(queries) * 1000:.1f} ms",
        ),
    ]


def measure_cpu(settings: Settings, retriever: Retriever) -> Row:
    """Measure the CPU time of ``QUESTIONS`` questions at depth 1 and no latency, without that of the model's client.

    The client's share is that of as many calls by itself, with the longest passage of the questions.
    """
    rows = list(itertools.islice(itertools.cycle(questions()), QUESTIONS))
    llm = create_llm(settings.llm_spec, settings, CallGate(CALLS_AT_ONCE))
    judge = create_judge("generated", llm, spec=settings.llm_spec)
    context = RagContext(reader=llm, retriever=retriever, judge=judge, limits=Limits(max_rec_depth=1))
    with RagSession(system="judge", context=context, settings=settings) as session:
        session.ask(rows[0].question, repeat=QUESTIONS)
        started = time.process_time()
        results = asyncio.run(_run(session, rows))
        cpu = time.process_time() - started
    calls = sum(result.usage["llm_calls"] for result in results)
    longest = max((chunk.text for result in results for chunk in result.tree.root.chunks), key=len)
    prompt = judge_messages(rows[0].question, longest)

    async def ask_alone() -> None:
        await asyncio.gather(*(llm.complete(prompt, meter=CallMeter(node="judge")) for _ in range(calls)))

    started = time.process_time()
    asyncio.run(ask_alone())
    client = time.process_time() - started
    each_ms, client_ms = (seconds / QUESTIONS * 1000 for seconds in (cpu, client))
    return Row(
        f"{QUESTIONS} judge questions, depth 1, no latency: CPU a question besides the client's",
        f"{each_ms - client_ms:.0f} ms",
        "< 60 ms",
        holds=each_ms - client_ms < 60,
        values=(each_ms - client_ms,),
        unit="ms",
        note=f"the client's {client_ms:.0f} ms, {calls} calls",
    )


def _fill_vector_cache(home: Path) -> None:
    """Ask all questions once without latency, which embeds every query."""
    with scripted_process(0.0) as base_url:
        settings = settings_for(home, base_url, checkpoints="memory:")
        with indexed_standards(settings):
            pass
        with RagSession(COLLECTION, settings=settings) as session:
            asyncio.run(_run(session, questions()))


def _settings(home: Path, base_url: str) -> Settings:
    return settings_for(home, base_url, max_concurrency=CALLS_AT_ONCE, durability="exit")


def measure() -> list[Row]:
    """Measure depths 1 and 3, then CPU time without latency, all with cached query vectors."""
    with tempfile.TemporaryDirectory() as folder, scripted_process(LATENCY_S) as base_url:
        _fill_vector_cache(Path(folder))
        settings = _settings(Path(folder), base_url)
        with indexed_standards(settings) as index:
            retriever = Retriever(index, topk=3, search_type="hybrid")
            rows = [row for depth in (1, 3) for row in measure_depth(depth, settings, retriever)]
        with scripted_process(0.0) as at_once, indexed_standards(quick := _settings(Path(folder), at_once)) as index:
            return [*rows, measure_cpu(quick, Retriever(index, topk=3, search_type="hybrid"))]
