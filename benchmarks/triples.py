"""Triples drawn from passages: estimate against calls, kills (-9), a second index, the cost of the machinery, recall.

JUDGETREE_BENCH_TRIPLES names the data folder in which ``judgetree index --graph triples`` has kept what a real model,
that of JUDGETREE_LLM, drew from the standards; no model is called for it. All else is asked of the scripted model.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.questions import Dataset
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.runs.services import open_corpus
from judgetree.modules.extraction.cache import FILE_NAME
from judgetree.modules.extraction.extraction import ExtractionReport, build_triple_graph, extract_triples
from judgetree.modules.extraction.plan import TripleModel, plan_extraction
from judgetree.modules.index.factory import open_index
from judgetree.modules.judge.gold import keys_of
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.settings import Settings, load_settings
from judgetree.modules.structure.passages import Passage, passages_of
from judgetree.modules.structure.triples import KIND, triple_graph

from .entities import searched_rows
from .hotpotqa import EMBEDDINGS
from .measurement import Row, not_measured

REPO = Path(__file__).parents[1]
STANDARDS = REPO / "data" / "standards"
QUESTIONS = REPO / "data" / "standards_qa.jsonl"
AT_ONCE = 8
KILLS = 10
COLLECTION = "standards"
VARIABLE = "JUDGETREE_BENCH_TRIPLES"


def measure() -> list[Row]:
    """Draw the triples of the standards from the scripted model, unbroken and killed at random moments."""
    rows = _of_a_model()
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(QUESTIONS) as server:
        whole = _settings(Path(folder) / "whole", server)
        with open_index(COLLECTION, whole, data_path=STANDARDS) as index:
            index.get_index_done()
            passages = list(passages_of(index))
        rows += _unbroken(passages, whole, server)
        server.reset()
        server.configure(latency_s=0.2)
        rows.append(_killed(Path(folder) / "whole", Path(folder) / "parts", server, len(passages)))
    return rows


def _of_a_model() -> list[Row]:
    what = f"{COLLECTION}: triples of a real model"
    if not (home := os.environ.get(VARIABLE)):
        return [not_measured(what, f"{VARIABLE} names no data folder")]
    settings = load_settings(home=Path(home), embeddings=EMBEDDINGS, checkpoints="memory:")
    dataset = load_dataset(f"standards:{QUESTIONS}")
    with open_corpus(dataset, settings) as index:
        passages = list(passages_of(index))
        model = TripleModel(llm=create_llm(settings.llm_spec, settings, CallGate(AT_ONCE)), home=settings.home)
        report = extract_triples(plan_extraction(passages, model), model, max_passages=0)
        graph = build_triple_graph(index, report, settings.home)
        edges = "".join(f", {count:,} {name}" for name, count in graph.edges.items())
        drawn = f"{len(report.triples)} of {graph.passages} passages, {graph.phrases:,} phrases{edges}"
        covered = _covered(dataset, passages, report)
        return [Row(what, f"{model.llm.model}: {drawn}"), *searched_rows(covered, index, settings, KIND)]


def _covered(dataset: Dataset, passages: list[Passage], report: ExtractionReport) -> Dataset:
    """Leave the questions of which every supporting passage has its triples."""
    without = (each for each in passages if each.chunk_id not in report.triples)
    missing = set().union(*(keys_of(each.metadata, dataset.key_field) for each in without))
    questions = tuple(each for each in dataset.questions if missing.isdisjoint(each.supporting))
    return replace(dataset, questions=questions)


def _settings(home: Path, server: ScriptedServer) -> Settings:
    os.environ["JUDGETREE_HOME"] = str(home)
    os.environ["JUDGETREE_LLM"] = f"{server.base_url}#scripted"
    return load_settings(max_concurrency=AT_ONCE)


def _unbroken(passages: list[Passage], settings: Settings, server: ScriptedServer) -> list[Row]:
    llm = create_llm(settings.llm_spec, settings, CallGate(AT_ONCE))
    model = TripleModel(llm=llm, home=settings.home, at_once=AT_ONCE)
    plan = plan_extraction(passages, model)
    before, cpu = time.perf_counter(), time.process_time()
    report = extract_triples(plan, model)
    seconds, cpu_s = time.perf_counter() - before, time.process_time() - cpu
    asked = server.requests.total()
    started = time.perf_counter()
    again = extract_triples(second := plan_extraction(passages, model), model)
    kept_s = time.perf_counter() - started
    started = time.perf_counter()
    graph = triple_graph(passages, "", report.triples, "")
    graph_s = time.perf_counter() - started
    return [
        Row("calls said before, and made", f"{plan.calls}, {asked}", "equal", holds=plan.calls == asked),
        Row(
            "tokens of prompts said before, and counted by the server",
            f"{plan.prompt_tokens:,}, {report.prompt_tokens:,}",
        ),
        Row(
            f"one passage, model server in the same process: wall and CPU time, {AT_ONCE} at once",
            f"{1000 * seconds / plan.calls:.1f} ms, {1000 * cpu_s / plan.calls:.1f} ms",
        ),
        Row(
            "a second index: calls, and time a passage to read what is kept",
            f"{second.calls}, {1000 * kept_s / len(passages):.2f} ms",
            "0",
            holds=second.calls == again.calls == 0 and again.triples == report.triples,
        ),
        Row("making the graph, a passage", f"{1000 * graph_s / len(passages):.2f} ms, {len(graph.phrases)} phrases"),
    ]


def _killed(whole: Path, parts: Path, server: ScriptedServer, passages: int) -> Row:
    (whole / FILE_NAME).unlink()
    (whole / "completions.sqlite").unlink()
    whole.rename(parts)
    command = [sys.executable, "-m", "judgetree.app", "index", "-c", COLLECTION, "--graph", "triples", "--yes"]
    surroundings = {**os.environ, "JUDGETREE_HOME": str(parts), "JUDGETREE_MAX_CONCURRENCY": str(AT_ONCE)}
    rng, kills = random.Random(3), 0
    for _ in range(KILLS):
        before = server.requests.total()
        with subprocess.Popen(command, cwd=REPO, env=surroundings, stderr=subprocess.DEVNULL) as process:
            until = before + rng.randrange(1, passages // KILLS)
            while server.requests.total() < until and process.poll() is None:
                time.sleep(0.002)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
        server.wait_until_idle()
    done = subprocess.run(command, cwd=REPO, env=surroundings, check=True, capture_output=True, text=True)
    again = server.requests.total() - passages
    drawn = re.search(r"of (\d+) passages by", done.stdout)
    return Row(
        f"killed (-9) {kills} times and continued, {AT_ONCE} at once: calls made again",
        f"{again} of {passages}; {drawn[1] if drawn else 0} passages have their triples",
        f"≤ {kills * AT_ONCE} in flight at the kills; {passages}",
        holds=again <= kills * AT_ONCE and bool(drawn) and int(drawn[1]) == passages,
    )
