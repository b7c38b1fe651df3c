"""Rankers that choose passages which belong together, against rrf: at equal k, and at equal tokens of a reader.

At equal k every ranker is asked for k; within a limit of tokens all choose from the same 20 hits of a hybrid search by
rrf, which nothing has judged. JUDGETREE_BENCH_HOTPOTQA and JUDGETREE_BENCH_MUSIQUE name the files; no model is called
but the one that embeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median
from time import perf_counter
from typing import get_args

import numpy as np
from langchain_core.documents import Document

from judgetree.evaluation.datasets.questions import Dataset, EvalQuestion
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.metrics.context import answer_in_context, redundancy
from judgetree.evaluation.metrics.retrieval import all_supporting
from judgetree.evaluation.metrics.statistics import compare_paired
from judgetree.evaluation.runs.services import open_corpus
from judgetree.modules.config.reading import EvidenceRanker
from judgetree.modules.index.index import Index
from judgetree.modules.reader.evidence_choice import EvidenceChoice, passage_tokens
from judgetree.modules.reader.evidence_selection import RANK_DECAY
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.retriever.selection import OBJECTIVES, SELECTIONS, Candidates, greedy_within

from .hotpotqa import hotpotqa, without_file
from .measurement import Row, not_measured

VARIABLE = "JUDGETREE_BENCH_MUSIQUE"
CANDIDATES = 20
KS = (3, 5, 10)
TOKENS = (300, 600, 1200)
RRF, PACKED = "rrf", "packed"
RANKERS: tuple[EvidenceRanker, ...] = get_args(EvidenceRanker)

Chosen = Mapping[str, Sequence[Sequence[Document]]]
"""Passages of each question, by ranker; rrf is what the others are compared with."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a reader would see of one question."""

    all_found: float
    """1 if all supporting documents are among the passages."""
    answered: float | None
    repeats: float

    @classmethod
    def of(cls, question: EvalQuestion, chunks: Sequence[Document], key_field: str) -> Seen:
        """Score the passages of a question."""
        texts = [chunk.page_content for chunk in chunks]
        return cls(
            all_found=all_supporting([str(chunk.metadata[key_field]) for chunk in chunks], question.supporting),
            answered=answer_in_context(question, texts),
            repeats=redundancy(texts),
        )


def chosen_within(coarse: Sequence[Sequence[Document]], tokens: int) -> Chosen:
    """What a reader sees of the hits of rrf within a limit of tokens."""
    choices = {name: EvidenceChoice(evidence="all", evidence_tokens=tokens, evidence_ranker=name) for name in RANKERS}
    usual = {RRF: EvidenceChoice(evidence="all", evidence_tokens=tokens)}
    chosen = {name: [choice.of_chunks(each) for each in coarse] for name, choice in {**usual, **choices}.items()}
    return chosen | {PACKED: [packed(each, tokens) for each in coarse]}


def packed(chunks: Sequence[Document], tokens: int) -> list[Document]:
    """What the same greedy takes that sees rank and tokens alone: what a ranker adds to it is what coverage adds."""
    relevance = RANK_DECAY ** np.arange(len(chunks))
    unlike = Candidates(relevance=relevance, similarity=np.eye(len(chunks)))
    make = partial(OBJECTIVES["mmr"], unlike, {"relevance": 1.0})
    places = greedy_within(make, [float(passage_tokens(chunk)) for chunk in chunks], float(tokens))
    return [chunks[place] for place in sorted(places)] or list(chunks[:1])


def found_by(index: Index, questions: Sequence[EvalQuestion], *, topk: int) -> tuple[Chosen, dict[str, float]]:
    """The first ``topk`` of each ranker, and the median milliseconds of a search, by ranker."""
    found, took = {}, {}
    for name in (RRF, *SELECTIONS):
        retriever = Retriever(index, topk=topk, search_type="hybrid", ranker_type=name)
        hits, times = [], []
        for question in questions:
            retriever.get_similar_chunk_with_score(question.question)  # embeds it
            started = perf_counter()
            hits.append([chunk for chunk, _ in retriever.get_similar_chunk_with_score(question.question)])
            times.append(1000 * (perf_counter() - started))
        found[name], took[name] = hits, median(times)
    return found, took


def measure() -> list[Row]:
    """A row for each data set, limit and ranker."""
    rows = []
    given = hotpotqa()
    if given is None:
        rows.append(without_file("HotpotQA, rankers against rrf", ""))
    else:
        with given.index() as index:
            rows += _rows(given.dataset, index)
    file = os.environ.get(VARIABLE)
    if given is None or not file:
        return [*rows, not_measured("MuSiQue, rankers against rrf", f"{VARIABLE} names no file")]
    dataset = load_dataset(f"musique:{file}")
    with open_corpus(dataset, given.settings) as index:
        return [*rows, *_rows(dataset, index)]


def _rows(dataset: Dataset, index: Index) -> Iterator[Row]:
    questions = [question for question in dataset.questions if question.supporting]
    limits: dict[str, Chosen] = {}
    for k in KS:
        limits[f"k = {k}"], took = found_by(index, questions, topk=k)
        median_ms = ", ".join(f"{name} {each:.1f}" for name, each in took.items())
        yield Row(f"{dataset.name}, k = {k}: median ms of a search without the embedding", median_ms)
    coarse = found_by(index, questions, topk=CANDIDATES)[0][RRF]
    limits |= {f"{tokens} tokens": chosen_within(coarse, tokens) for tokens in TOKENS}
    for limit, chosen in limits.items():
        seen = {
            name: [
                Seen.of(question, chunks, dataset.key_field) for question, chunks in zip(questions, each, strict=True)
            ]
            for name, each in chosen.items()
        }
        for name, each in seen.items():
            yield Row(f"{dataset.name} ({len(questions)}), {limit}, {name}", _told(each, seen[RRF]))


def _told(ours: Sequence[Seen], usual: Sequence[Seen]) -> str:
    pairs = [
        (first.answered, second.answered)
        for first, second in zip(ours, usual, strict=True)
        if first.answered is not None and second.answered is not None
    ]
    found = _compared([each.all_found for each in ours], [each.all_found for each in usual])
    answered = _compared([first for first, _ in pairs], [second for _, second in pairs])
    return f"all supporting {found}; answer {answered} (n {len(pairs)}); redundancy {_mean(ours)}"


def _mean(seen: Sequence[Seen]) -> str:
    return f"{fmean(each.repeats for each in seen):.3f}"


def _compared(ours: Sequence[float], usual: Sequence[float]) -> str:
    compared = compare_paired(ours, usual, metric="share", test="mcnemar")
    by = compared.difference
    if ours == usual:
        return f"{compared.mean_a:.3f}"
    return f"{compared.mean_a:.3f} ({by.mean:+.3f}, {by.low:+.3f} to {by.high:+.3f})"
