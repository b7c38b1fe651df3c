"""The graph of entities as one more list of a search: recall, evidence complete, calls, and what the graph costs.

Graph, index, search and judged search are the real ones, with the ideal judge of ``links``. JUDGETREE_BENCH_HOTPOTQA
and JUDGETREE_BENCH_MUSIQUE name the files; no model is called but the one that embeds.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from judgetree.evaluation.datasets.questions import Dataset
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.runs.services import open_corpus
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.graph_list import GraphList
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import Settings
from judgetree.modules.structure.building import build_graph
from judgetree.modules.structure.entities import KIND, entity_graph
from judgetree.modules.structure.pagerank import PassageRanking
from judgetree.modules.structure.passages import Passage

from .corpus import DATA
from .hotpotqa import hotpotqa, without_file
from .links import DEPTH, TOPK, VARIABLE, asked, compared, recall
from .measurement import Row

SEARCHES = ("hybrid", "graph alone", "fused")
SIZES = (16_000, 100_000)


def searching(search: str, index: Index, settings: Settings, topk: int, kind: str) -> Retriever:
    """Return the retriever of one search; the graph alone has weight 1, and the fields have 0."""
    if search == "hybrid":
        return Retriever(index, topk=topk, search_type="hybrid")
    graph = GraphList(index, settings.home, kind=kind)
    if search == "fused":
        return Retriever(index, topk=topk, search_type="hybrid", graph=graph)
    weights = {"weights": [0.0, 0.0, 1.0]}
    return Retriever(index, topk=topk, search_type="hybrid", graph=graph, ranker_type="weighted", ranker_params=weights)


def searched_rows(dataset: Dataset, index: Index, settings: Settings, kind: str) -> Iterator[Row]:
    """Recall, evidence complete and calls without a graph of a kind, which was made, by it alone, and by both."""
    yield from _recall_rows(dataset, index, settings, kind)
    yield from _judged_rows(dataset, index, settings, kind)


def _recall_rows(dataset: Dataset, index: Index, settings: Settings, kind: str) -> Iterator[Row]:
    """Recall of two and of five hits, and the time of a search."""
    questions = [each for each in dataset.questions if each.supporting]
    found: dict[str, Mapping[int, Sequence[float]]] = {}
    for search in SEARCHES:
        retriever = searching(search, index, settings, 5, kind)
        retriever.get_similar_chunk_with_score("warm")
        hits, seconds = [], []
        for question in questions:
            started = time.perf_counter()
            hits.append([chunk for chunk, _ in retriever.get_similar_chunk_with_score(question.question)])
            seconds.append(time.perf_counter() - started)
        found[search] = {
            at: [
                recall(question, chunks[:at], dataset.key_field)
                for question, chunks in zip(questions, hits, strict=True)
            ]
            for at in (2, 5)
        }
        figures = "; ".join(
            f"recall@{at} {compared(values, found['hybrid'][at])}" for at, values in found[search].items()
        )
        yield Row(
            f"{dataset.name} ({len(questions)}), {search}", f"{figures}; {1000 * median(seconds):.1f} ms a search"
        )


def _judged_rows(dataset: Dataset, index: Index, settings: Settings, kind: str) -> Iterator[Row]:
    """Evidence complete and calls of each search, with the judge of chunks and the judge of sets."""
    for batched in (True, False):
        judge = "one call for all chunks" if batched else "a call for each chunk"
        usual = asked(dataset, index, settings, "sub_question", batched=batched)
        for search in SEARCHES:
            retriever = searching(search, index, settings, TOPK, kind)
            each = (
                usual
                if search == "hybrid"
                else asked(dataset, index, settings, "sub_question", batched=batched, retriever=retriever)
            )
            complete = compared([one.complete for one in each], [one.complete for one in usual])
            calls = compared([one.calls for one in each], [one.calls for one in usual])
            yield Row(
                f"{dataset.name} ({len(each)}), ideal judge, {judge}, top-k {TOPK}, depth {DEPTH}, {search}",
                f"evidence complete {complete}; calls {calls}",
            )


def size_rows() -> Iterator[Row]:
    """Seconds to make and to open the graph of many synthetic passages, and milliseconds of a PageRank in it."""
    drawn = random.Random(0)
    sentence = "the river runs from a hill past an old mill to the sea and back again in a year of rain"
    for size in SIZES:
        names = [f"Name{number} Place{number % 97}" for number in range(size // 2)]
        passages = [
            Passage(
                chunk_id=f"{number:064x}",
                text=f"{sentence} with " + " and ".join(names[int(size / 2 * drawn.random() ** 2)] for _ in range(10)),
                metadata={"source": "a.jsonl", "title": f"Title {number} of Place"},
            )
            for number in range(size)
        ]
        started = time.perf_counter()
        graph = entity_graph(passages, "")
        made_s, started = time.perf_counter() - started, time.perf_counter()
        ranking = PassageRanking(graph)
        opened_s, taken = time.perf_counter() - started, []
        for _ in range(50):
            seeds = ranking.seeds(
                names[drawn.randrange(len(names))], dict.fromkeys(drawn.sample(graph.passages, 20), 1)
            )
            started = time.perf_counter()
            ranking.ranked(seeds, 20)
            taken.append(time.perf_counter() - started)
        yield Row(
            f"graph of entities of {size:,} synthetic passages, ten names each: seconds to make it, to open it, "
            "megabytes, milliseconds of a PageRank (median of 50)",
            f"{made_s:.1f}, {opened_s:.2f}, {len(graph.to_bytes()) / 1e6:.1f}, {1000 * median(taken):.1f}",
            "< 10 ms at 16,000" if size == SIZES[0] else "",
        )


def rows_of(dataset: Dataset, settings: Settings) -> Iterator[Row]:
    """All rows of one data set."""
    with open_corpus(dataset, settings) as index:
        made = build_graph(index, KIND, settings.home)
        edges = ", ".join(f"{count:,} {name}" for name, count in made.edges.items())
        cost = f"{made.phrases:,} phrases, {edges}; {made.seconds:.1f} s, {made.bytes / 1e6:.2f} MB"
        yield Row(f"{dataset.name}: graph of entities of {made.passages:,} passages", cost)
        yield from searched_rows(dataset, index, settings, KIND)


def measure() -> list[Row]:
    """A row for each data set, search and judge."""
    rows = [*size_rows()]
    given, file = hotpotqa(), os.environ.get(VARIABLE)
    if given is None:
        return [*rows, without_file("HotpotQA, the graph of entities", "")]
    datasets = [
        load_dataset(f"standards:{DATA / 'standards_qa.jsonl'}"),
        *([load_dataset(f"musique:{file}")] if file else []),
        given.dataset,
    ]
    return rows + [row for dataset in datasets for row in rows_of(dataset, given.settings)]
