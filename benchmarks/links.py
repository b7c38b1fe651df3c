"""Links between passages against sub-questions, with an ideal judge: evidence complete, calls, and what a graph costs.

Graph, index, search and judged search are the real ones; the judge knows the supporting passages, and the reader's
answer does not matter. JUDGETREE_BENCH_HOTPOTQA and JUDGETREE_BENCH_MUSIQUE name the files; no model is called but the
one that embeds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from langchain_core.documents import Document

from judgetree.evaluation.datasets.questions import Dataset, EvalQuestion
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.metrics.retrieval import supporting_recall
from judgetree.evaluation.metrics.statistics import compare_paired
from judgetree.evaluation.runs.gold import gold_table
from judgetree.evaluation.runs.services import open_corpus
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.result import RagResult
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.index.index import Index
from judgetree.modules.judge.gold import keys_of
from judgetree.modules.judge.noise import Noise
from judgetree.modules.judge.noisy import noisy_judge
from judgetree.modules.retriever.linked_chunks import LinkedChunks
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import Settings
from judgetree.modules.structure.building import build_graph
from judgetree.modules.structure.links import KIND, link_graph
from judgetree.modules.structure.passages import Passage

from .corpus import DATA, ask_all
from .hotpotqa import hotpotqa, without_file
from .measurement import Row

VARIABLE = "JUDGETREE_BENCH_MUSIQUE"
TOPK, DEPTH, NEIGHBOURS = 3, 1, 3
RULES = ("sub_question", "link", "both")
MANY = 100_000


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One question under one rule."""

    complete: float
    """1 if every supporting passage was judged useful somewhere in the tree."""
    calls: float
    """Calls of reader and judge; the ideal judge books those that a model would make."""


class AnyReader:
    """Answers at once, whatever the evidence is."""

    model = "any"

    async def complete(self, messages: Sequence[Message], *, meter: CallMeter, **_: object) -> Completion:
        """Answer as ``ChatLLM.complete``."""
        meter.reserve()
        meter.record(kind="chat", model=self.model, started=time.perf_counter())
        return Completion(text="an answer", thinking="", finish_reason="stop")


def measured(question: EvalQuestion, result: RagResult, key_field: str) -> Measured:
    """Score one answered question."""
    nodes = list(result.tree.query_nodes())
    useful = [chunk for node in nodes for chunk in node.chunks if (chunk.score or 0) >= 1]
    found = set().union(*(keys_of(chunk.metadata, key_field) for chunk in useful)) if useful else set()
    return Measured(
        complete=float(set(question.supporting) <= found),
        calls=result.usage["llm_calls"],
    )


def asked(
    dataset: Dataset, index: Index, settings: Settings, rule: str, *, batched: bool, retriever: Retriever | None = None
) -> list[Measured]:
    """Ask every question that has gold under one rule; ``retriever`` defaults to a hybrid one.

    With ``batched`` equal sub-questions of a tree share one run.
    """
    questions = [question for question in dataset.questions if question.supporting]
    spec = rule if rule == "sub_question" else f"{rule}:neighbours={NEIGHBOURS}"
    context = RagContext(
        reader=AnyReader(),  # type: ignore[arg-type]
        retriever=retriever or Retriever(index, topk=TOPK, search_type="hybrid"),
        judge=noisy_judge(gold_table(dataset), Noise(batched=batched)),
        links=LinkedChunks(index, settings.home),
        # A model that judges a set asks for a missing fact once; the ideal judge does so from each useful chunk.
        limits=Limits(max_rec_depth=DEPTH, expansion=spec, sharing="equal" if batched else "off"),
    )
    with RagSession(system="judge", context=context, settings=settings) as session:
        results = ask_all(session, [row.question for row in questions])
    return [measured(question, result, dataset.key_field) for question, result in zip(questions, results, strict=True)]


def recall_rows(dataset: Dataset, index: Index, settings: Settings) -> Iterator[Row]:
    """Recall of five hits, against the first two and three passages that they are linked with."""
    retriever = Retriever(index, topk=5, search_type="hybrid")
    links = LinkedChunks(index, settings.home)
    five, joined, two = [], [], []
    for question in (each for each in dataset.questions if each.supporting):
        hits = [chunk for chunk, _ in retriever.get_similar_chunk_with_score(question.question)]
        ids = [str(chunk.metadata["chunk_id"]) for chunk in hits]
        linked = links.linked_now(ids[:2], without=set(ids[:2]), most=3)
        mixed = [*hits[:2], *(each.chunk for each in linked), *hits[2:]][:5]
        for into, chunks in ((five, hits), (joined, mixed), (two, hits[:2])):
            into.append(recall(question, chunks, dataset.key_field))
    yield Row(
        f"{dataset.name} ({len(five)}): recall@2, recall@5, and @5 with links of the first two in place of hits",
        f"{fmean(two):.3f}, {fmean(five):.3f}, {compared(joined, five)}",
    )


def recall(question: EvalQuestion, chunks: Sequence[Document], key_field: str) -> float:
    """Return the share of the supporting passages among chunks."""
    return supporting_recall([frozenset(keys_of(each.metadata, key_field)) for each in chunks], question.supporting)


def judged_rows(dataset: Dataset, index: Index, settings: Settings) -> Iterator[Row]:
    """Evidence complete and calls of each rule, with the judge of chunks and the judge of sets."""
    for batched in (False, True):
        found: Mapping[str, list[Measured]] = {
            rule: asked(dataset, index, settings, rule, batched=batched) for rule in RULES
        }
        usual = found["sub_question"]
        judge = "one call for all chunks" if batched else "a call for each chunk"
        for rule, each in found.items():
            complete = compared([one.complete for one in each], [one.complete for one in usual])
            calls = compared([one.calls for one in each], [one.calls for one in usual])
            yield Row(
                f"{dataset.name} ({len(each)}), ideal judge, {judge}, top-k {TOPK}, depth {DEPTH}, {rule}",
                f"evidence complete {complete}; calls {calls}",
                "as complete, with fewer calls; else reported" if rule == "both" else "",
            )


def compared(ours: Sequence[float], usual: Sequence[float]) -> str:
    """Return the mean and its paired difference from the usual, with the 95 % interval."""
    if list(ours) == list(usual):
        return f"{fmean(ours):.3f}"
    by = compare_paired(ours, usual, metric="share", test="permutation").difference
    return f"{fmean(ours):.3f} ({by.mean:+.3f}, {by.low:+.3f} to {by.high:+.3f})"


def size_row() -> Row:
    """How long the graph of many passages takes to make and to read: synthetic ones that name each other's titles."""
    sentence = "the river runs from a hill past an old mill to the sea and back again in a year of rain"
    passages = [
        Passage(
            chunk_id=f"{number:064x}",
            text=f"Title {number} of Place. {sentence} and {sentence} by Title {(number * 7919) % MANY} of Place",
            metadata={"source": "a.jsonl", "title": f"Title {number} of Place"},
        )
        for number in range(MANY)
    ]
    started = time.perf_counter()
    graph = link_graph(passages, "")
    made_s, data = time.perf_counter() - started, graph.to_bytes()
    started = time.perf_counter()
    type(graph).from_bytes(data, where="", remedy="")
    read_s = time.perf_counter() - started
    return Row(
        f"graph of links of {MANY:,} synthetic passages: seconds to make it, to read it, megabytes",
        f"{made_s:.1f}, {read_s:.2f}, {len(data) / 1e6:.1f}",
    )


def measure() -> list[Row]:
    """A row for each data set, rule and judge."""
    rows = [size_row()]
    given, file = hotpotqa(), os.environ.get(VARIABLE)
    if given is None:
        return [*rows, without_file("HotpotQA, links against sub-questions", "")]
    datasets = [
        given.dataset,
        *([load_dataset(f"musique:{file}")] if file else []),
        load_dataset(f"standards:{DATA / 'standards_qa.jsonl'}"),
    ]
    for dataset in datasets:
        with open_corpus(dataset, given.settings) as index:
            made = build_graph(index, KIND, given.settings.home)
            edges = ", ".join(f"{count:,} {name}" for name, count in made.edges.items())
            cost = f"{made.passages:,} passages, {edges}; {made.seconds:.1f} s, {made.bytes / 1e6:.2f} MB"
            rows.append(Row(f"{dataset.name}: graph of links", cost))
            rows += recall_rows(dataset, index, given.settings)
            rows += judged_rows(dataset, index, given.settings)
    return rows
