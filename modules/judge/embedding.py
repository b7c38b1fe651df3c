"""The judge without a model call for its verdicts: the similarity of query and passage against two thresholds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
from langchain_core.documents import Document

from ..calls.usage import CallMeter
from ..embedding.embedder import Embedder
from ..errors import ModelCallError, ModelSetupError
from .asker import SubQuestionAsker, query_with_name
from .contract import Score, SetVerdict, Verdict, about, raised_or_all, sub_question_problem
from .thresholds import LogprobThresholds


class Similarity:
    """Rates passages by the cosine of their vectors with that of the query.

    ::

        similarity = Similarity(embedder)
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """The embedder's name."""
        return self._embedder.name

    async def rate(self, query: str, passages: Sequence[str], *, meter: CallMeter) -> list[float]:
        """Return (1 + cosine) / 2 for each passage, in [0, 1]; a cached vector costs no call.

        Raises:
            ModelCallError: The embedder failed.
        """
        started = time.perf_counter()
        try:
            asked = np.asarray(await self._embedder.aembed_query(query))
            vectors = np.asarray(await self._embedder.aembed_documents(list(passages)))
        except ModelCallError as error:
            meter.record(kind="embedding", model=self.name, started=started, error=str(error))
            raise
        meter.record(kind="embedding", model=self.name, started=started)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
        cosines = np.clip(vectors @ asked / np.maximum(lengths, 1e-12), -1.0, 1.0)
        return [(1.0 + float(cosine)) / 2.0 for cosine in cosines]


class EmbeddingJudge:
    """Scores a chunk by its similarity to the query.

    The sub-question of a 1 is written by a model, or by the template "query (title)".

    ::

        judge = EmbeddingJudge(create_embeddings("local:minilm", settings), LogprobThresholds(needed=0.7))
    """

    def __init__(
        self, embedder: Embedder, thresholds: LogprobThresholds, *, asker: SubQuestionAsker | None = None
    ) -> None:
        """Judge by least similarities for a 1 and a 2; without ``asker`` the template asks."""
        self._similarity = Similarity(embedder)
        self._thresholds = thresholds
        self._asker = asker

    def fingerprint(self) -> dict[str, str]:
        """Return kind, embedder, thresholds and what writes the sub-questions."""
        alone = self._thresholds.alone
        asker = self._asker.fingerprint() if self._asker else {}
        return {
            "kind": "embedding",
            "embedder": self._similarity.name,
            "threshold_needed": str(self._thresholds.needed),
            "threshold_alone": "" if alone is None else str(alone),
            "writer": "model" if self._asker else "template",
            **{f"writer_{key}": value for key, value in asker.items()},
        }

    def expected_calls(self, chunks: int) -> int:
        """Return half a call a chunk, for sub-questions; 0 with the template."""
        return (chunks + 1) // 2 if self._asker else 0

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        """Judge all chunks with one embedding of the query, and up to two calls for the sub-question of each 1."""
        try:
            ratings = await self._similarity.rate(query, [chunk.page_content for chunk in chunks], meter=meter)
        except ModelSetupError:
            raise
        except ModelCallError as error:
            return SetVerdict(verdicts=(Verdict(status="unknown", problem=str(error)),) * len(chunks))
        verdicts = [self._verdict(rating) for rating in ratings]
        if expand:
            verdicts = await asked_on(verdicts, query, chunks, self._asker, meter=meter)
        return SetVerdict(verdicts=tuple(verdicts))

    def _verdict(self, rating: float) -> Verdict:
        alone = self._thresholds.alone
        score: Score = 0
        if rating >= self._thresholds.needed:
            score = 2 if alone is not None and rating >= alone else 1
        return Verdict(status="judged", score=score, p_needed=rating, reason=f"similarity {2 * rating - 1:.2f}")


async def asked_on(
    verdicts: Sequence[Verdict],
    query: str,
    chunks: Sequence[Document],
    asker: SubQuestionAsker | None,
    *,
    meter: CallMeter,
) -> list[Verdict]:
    """Return verdicts in which each 1 has its sub-question, written by ``asker``, else the query with a chunk's title.

    An error is raised once all calls have ended.

    Raises:
        ModelSetupError: The model's endpoint can serve no request.
    """

    async def asking(verdict: Verdict, chunk: Document) -> Verdict:
        if verdict.score != 1 or verdict.next_query:
            return verdict
        if asker is None:
            return _by_template(verdict, query, chunk)
        with about(chunk, meter) as own:
            return await asker.asking(verdict, query, chunk.page_content, meter=own)

    pairs = zip(verdicts, chunks, strict=True)
    return raised_or_all(await asyncio.gather(*(asking(*pair) for pair in pairs), return_exceptions=True))


def _by_template(verdict: Verdict, query: str, chunk: Document) -> Verdict:
    title = str(chunk.metadata.get("title") or PurePosixPath(str(chunk.metadata.get("source") or "")).stem)
    question = query_with_name(query, name=title, passage=title) if title else ""
    problem = sub_question_problem(question, query) if question else "the passage has no title that the query lacks"
    return replace(verdict, problem=problem) if problem else replace(verdict, next_query=question)
