"""Hybrid search over the pooled paragraphs of HotpotQA against brute force over the same vectors and texts.

Brute force is cosine over every stored vector, BM25 over every text, and their reciprocal rank fusion: no index, no
approximation, nothing of Milvus.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import numpy.typing as npt

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.metrics.retrieval import all_supporting
from judgetree.modules.embedding.embedder import Embedder, create_embeddings
from judgetree.modules.index.index import Index
from judgetree.modules.index.schema import DENSE_FIELD, PK_FIELD, STOP_WORDS, TEXT_FIELD
from judgetree.modules.retriever.retriever import Retriever

from .hotpotqa import EMBEDDINGS, HotpotQA, hotpotqa, without_file
from .measurement import Row

KS = (3, 10)
TOLERANCE = 0.02
RRF_K = 60
BM25_K1, BM25_B = 1.5, 0.75
"""Those of Milvus Lite."""
_MOST_ROWS = 16_384
"""Milvus gives no more rows at once."""
_STOPPED = frozenset(STOP_WORDS)

Scores = npt.NDArray[np.float64]
"""One a document, in their order; higher is better."""


def words_of(text: str) -> list[str]:
    """Words as Milvus Lite's standard analyzer cuts them: runs of word characters in lower case, no stop words."""
    return [word for word in re.findall(r"\w+", text.lower()) if word not in _STOPPED]


class Bm25:
    """Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with Lucene's IDF, never negative."""

    def __init__(self, texts: Sequence[str], *, k1: float = BM25_K1, b: float = BM25_B) -> None:
        counts = [Counter(words_of(text)) for text in texts]
        lengths = [sum(count.values()) for count in counts]
        mean_length = fmean(lengths) if any(lengths) else 1.0
        weights: defaultdict[str, dict[int, float]] = defaultdict(dict)
        for place, count in enumerate(counts):
            damping = k1 * (1 - b + b * lengths[place] / mean_length)
            for word, times in count.items():
                weights[word][place] = times * (k1 + 1) / (times + damping)
        self._size = len(texts)
        self._postings = {
            word: (np.array(list(found)), np.array(list(found.values())) * _idf(self._size, len(found)))
            for word, found in weights.items()
        }

    def scores(self, query: str) -> Scores:
        """0 for a text that shares no word; a word that the query has twice counts twice."""
        scores = np.zeros(self._size)
        for word in words_of(query):
            if word in self._postings:
                places, weights = self._postings[word]
                scores[places] += weights
        return scores


def _idf(texts: int, holding: int) -> float:
    return math.log(1 + (texts - holding + 0.5) / (holding + 0.5))


@dataclass(frozen=True, kw_only=True)
class BruteForce:
    """The reference search. Texts, keys and vectors belong together by place."""

    chunk_ids: Sequence[str]
    keys: Sequence[str]
    vectors: npt.NDArray[np.float32]
    """Shape (chunks, dimension), of length 1 each."""
    bm25: Bm25

    def search(self, query: str, vector: Sequence[float], *, topk: int) -> list[str]:
        """Keys of the ``topk`` best, best first; each field is asked for max(4 * topk, 12), as the retriever does."""
        fetched = max(4 * topk, 12)
        asked = np.asarray(vector, dtype=np.float64)
        dense = self._ranked(self.vectors @ (asked / np.linalg.norm(asked)), fetched)
        by_words = self.bm25.scores(query)
        sparse = [place for place in self._ranked(by_words, fetched) if by_words[place] > 0]
        fused = fuse([dense, sparse])
        best = sorted(fused, key=lambda place: (-fused[place], self.chunk_ids[place]))[:topk]
        return [self.keys[place] for place in best]

    def _ranked(self, scores: Scores, limit: int) -> list[int]:
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], self.chunk_ids[place]))
        return order[:limit]


def fuse(rankings: Sequence[Sequence[int]], *, k: int = RRF_K) -> dict[int, float]:
    """Reciprocal rank fusion (Cormack et al., SIGIR 2009): the sum of 1 / (k + rank), ranks from 1 on."""
    fused: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            fused[place] += 1 / (k + rank)
    return dict(fused)


def brute_force_over(index: Index, key_field: str) -> BruteForce:
    """The reference over what the collection holds."""
    client = index.connection.client
    index.info()  # loads the collection
    fields = [PK_FIELD, TEXT_FIELD, key_field, DENSE_FIELD]
    rows = client.query(index.vector_store_name, filter="", output_fields=fields, limit=_MOST_ROWS)
    vectors = np.array([row[DENSE_FIELD] for row in rows], dtype=np.float32)
    return BruteForce(
        chunk_ids=[str(row[PK_FIELD]) for row in rows],
        keys=[str(row[key_field]) for row in rows],
        vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
        bm25=Bm25([str(row[TEXT_FIELD]) for row in rows]),
    )


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Both searches at one k, over all questions."""

    ours: float
    """Share of questions whose supporting paragraphs are all among the first k."""
    reference: float
    shared: float
    """Share of the reference's chunks that ours finds too."""


def compare(
    questions: Sequence[EvalQuestion], ours: Retriever, reference: BruteForce, embedder: Embedder, key_field: str
) -> Agreement:
    """Ask both; the k is the retriever's ``topk``."""
    figures = []
    for question in questions:
        hits = ours.get_similar_chunk_with_score(question.question)
        found = [str(chunk.metadata[key_field]) for chunk, _ in hits]
        expected = reference.search(question.question, embedder.embed_query(question.question), topk=ours.topk)
        figures.append(
            (
                all_supporting(found, question.supporting, k=ours.topk),
                all_supporting(expected, question.supporting, k=ours.topk),
                len(set(found) & set(expected)) / len(expected),
            )
        )
    return Agreement(**dict(zip(("ours", "reference", "shared"), map(fmean, zip(*figures, strict=True)), strict=True)))


def measure() -> list[Row]:
    """All-supporting at 3 and at 10."""
    required = f"within {TOLERANCE} of each other"
    given = hotpotqa()
    if given is None:
        return [without_file("HotpotQA, hybrid search against brute force: all-supporting @3 and @10", required)]
    return [_row(given, k, agreement, required) for k, agreement in _agreements(given).items()]


def _agreements(given: HotpotQA) -> dict[int, Agreement]:
    dataset = given.dataset
    embedder = create_embeddings(EMBEDDINGS, given.settings)
    with given.index() as index:
        reference = brute_force_over(index, dataset.key_field)
        retrievers = {k: Retriever(index, topk=k, search_type="hybrid") for k in KS}
        return {
            k: compare(dataset.questions, retriever, reference, embedder, dataset.key_field)
            for k, retriever in retrievers.items()
        }


def _row(given: HotpotQA, k: int, agreement: Agreement, required: str) -> Row:
    sizes = f"{len(given.dataset.questions)} HotpotQA questions, {len(given.dataset.documents)} chunks"
    return Row(
        f"{sizes}, MiniLM and BM25 by RRF: all-supporting @{k}, ours against brute force",
        f"{agreement.ours:.3f} against {agreement.reference:.3f}",
        required,
        holds=abs(agreement.ours - agreement.reference) <= TOLERANCE,
        values=(agreement.ours, agreement.reference),
        note=f"{agreement.shared:.0%} of the chunks shared",
    )
