"""The judge that weighs a model's P(needed), similarity, BM25, rank and margin by logistic regression."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence

from langchain_core.documents import Document

from ..calls.usage import CallMeter
from ..errors import ModelCallError, ModelSetupError
from ..retriever.bm25 import Bm25
from .asker import SubQuestionAsker
from .contract import Score, SetVerdict, Verdict, about, raised_or_all
from .embedding import Similarity, asked_on
from .fits import logit, sigmoid
from .logprob import LogprobJudge

FEATURES = ("p_needed", "similarity", "bm25", "rank", "margin")
"""Log odds of the model's P(needed); similarity; BM25 among the chunks of the query, 1 for the best; 1 / (1 + rank) by
similarity and BM25 together; similarity above the best other one."""
THRESHOLD, BIAS = "threshold", "bias"
_RRF = 60
UNFITTED: Mapping[str, float] = {**dict.fromkeys(FEATURES, 0.0), BIAS: 0.0, THRESHOLD: 0.5}
"""Weighs nothing: 1/2 for every chunk."""


def features_of(
    query: str, passages: Sequence[str], needed: Sequence[float | None], similarity: Sequence[float]
) -> list[dict[str, float]]:
    """Return the features of each passage of a query; an unknown P(needed) counts as 1/2.

    >>> [rated] = features_of("Who wrote it?", ["Ada wrote it."], [0.5], [0.75])
    >>> rated
    {'p_needed': 0.0, 'similarity': 0.75, 'bm25': 1.0, 'rank': 1.0, 'margin': 0.0}
    """
    words = Bm25(passages).scores(query)
    most = max(words, default=0.0) or 1.0
    by_similarity, by_words = _places(similarity), _places(words)
    together = _places([1 / (_RRF + a) + 1 / (_RRF + b) for a, b in zip(by_similarity, by_words, strict=True)])
    return [
        {
            "p_needed": 0.0 if p is None else logit(p),
            "similarity": similarity[at],
            "bm25": words[at] / most,
            "rank": 1 / (1 + together[at]),
            "margin": similarity[at] - max((*similarity[:at], *similarity[at + 1 :]), default=similarity[at]),
        }
        for at, p in enumerate(needed)
    ]


def weighed(features: Mapping[str, float], parameters: Mapping[str, float]) -> float:
    """Return the probability in (0, 1) that the weights and the bias give to features."""
    return sigmoid(parameters[BIAS] + math.fsum(parameters[name] * features[name] for name in FEATURES))


class FusedJudge:
    """Scores a chunk 1 if its probability reaches a threshold, else 0.

    ::

        judge = FusedJudge(LogprobJudge(llm), Similarity(embedder), fit.parameters, asker=SubQuestionAsker(llm))
    """

    def __init__(
        self, rater: LogprobJudge, similarity: Similarity, parameters: Mapping[str, float], *, asker: SubQuestionAsker
    ) -> None:
        """Weigh by ``parameters``: a weight for each of ``FEATURES``, the ``bias`` and the ``threshold``."""
        self._rater = rater
        self._similarity = similarity
        self._parameters = dict(parameters)
        self._asker = asker

    def fingerprint(self) -> dict[str, str]:
        """Return kind, model, prompts, embedder and parameters."""
        rater = self._rater.fingerprint()
        return {
            "kind": "fused",
            **{key: rater[key] for key in ("model", "prompt")},
            "embedder": self._similarity.name,
            **{f"weight_{name}": str(value) for name, value in sorted(self._parameters.items())},
        }

    def expected_calls(self, chunks: int) -> int:
        """Return two calls a chunk: one of one token each, and sub-questions."""
        return 2 * chunks

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        """Judge all chunks: a call of one token about each, and up to two for the sub-question of each 1.

        Verdicts are unknown where the model or the embedder fails.
        """
        passages = [chunk.page_content for chunk in chunks]
        try:
            similarity = await self._similarity.rate(query, passages, meter=meter)
            needed = await self.needed(query, chunks, meter=meter)
        except ModelSetupError:
            raise
        except ModelCallError as error:
            return SetVerdict(verdicts=(Verdict(status="unknown", problem=str(error)),) * len(chunks))
        rated = features_of(query, passages, needed, similarity)
        verdicts = [self._verdict(each) for each in rated]
        if expand:
            verdicts = await asked_on(verdicts, query, chunks, self._asker, meter=meter)
        return SetVerdict(verdicts=tuple(verdicts))

    async def needed(self, query: str, chunks: Sequence[Document], *, meter: CallMeter) -> list[float | None]:
        """Return the model's P(needed) of each chunk; errors are raised once all calls have ended."""

        async def one(chunk: Document) -> float | None:
            with about(chunk, meter) as own:
                return (await self._rater.probabilities(query, chunk.page_content, meter=own, alone=False))[0]

        return raised_or_all(await asyncio.gather(*map(one, chunks), return_exceptions=True))

    def _verdict(self, features: Mapping[str, float]) -> Verdict:
        p_needed = weighed(features, self._parameters)
        shown = ", ".join(f"{name} {features[name]:.2f}" for name in FEATURES)
        score: Score = 1 if p_needed >= self._parameters[THRESHOLD] else 0
        return Verdict(status="judged", score=score, p_needed=p_needed, reason=f"{p_needed:.2f} by {shown}")


def _places(ratings: Sequence[float]) -> list[int]:
    """Return the place of each rating, 0 for the highest; of equal ones the earlier is better."""
    order = sorted(range(len(ratings)), key=lambda at: (-ratings[at], at))
    return [order.index(at) for at in range(len(ratings))]
