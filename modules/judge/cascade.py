"""The judge that asks a model only about the chunks that a cheap rating leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from ..calls.usage import CallMeter
from ..errors import ModelCallError, ModelSetupError
from .asker import SubQuestionAsker
from .contract import AnyJudge, SetVerdict, Verdict, expected_calls, judge_each, judges_sets
from .embedding import Similarity, asked_on
from .fits import Curve


class CascadeJudge:
    """Scores a chunk 0 below a low similarity, 1 from a high one on; between them the judge ``inner`` decides.

    ::

        asker = SubQuestionAsker(llm)
        judge = CascadeJudge(Similarity(embedder), low=0.55, high=0.85, inner=BatchedJudge(llm), asker=asker)
    """

    def __init__(
        self,
        similarity: Similarity,
        *,
        low: float,
        high: float,
        inner: AnyJudge,
        asker: SubQuestionAsker,
        curve: Curve | None = None,
    ) -> None:
        """Take thresholds in [0, 1], ``low`` <= ``high``; ``curve`` calibrates the similarities."""
        self._similarity = similarity
        self._low = low
        self._high = high
        self._inner = inner
        self._asker = asker
        self._curve = curve

    def fingerprint(self) -> dict[str, str]:
        """Return kind, embedder and thresholds, with the inner judge's fingerprint as ``inner_…``."""
        inner = {f"inner_{key}": value for key, value in self._inner.fingerprint().items()}
        own = {"kind": "cascade", "embedder": self._similarity.name, "low": str(self._low), "high": str(self._high)}
        return own | inner | {f"writer_{key}": value for key, value in self._asker.fingerprint().items()}

    def expected_calls(self, chunks: int) -> int:
        """Return what the inner judge expects for all chunks."""
        return expected_calls(self._inner, chunks)

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        """Judge the clear chunks by similarity and the others by the inner judge; all by it if the embedder fails."""
        try:
            ratings = await self._similarity.rate(query, [chunk.page_content for chunk in chunks], meter=meter)
        except ModelSetupError:
            raise
        except ModelCallError:
            ratings = [self._low] * len(chunks)
        verdicts = [self._clear(rating) for rating in ratings]
        open_chunks = [chunk for chunk, verdict in zip(chunks, verdicts, strict=True) if verdict is None]
        given = await self._judged(query, open_chunks, meter, expand=expand) if open_chunks else SetVerdict(verdicts=())
        from_model = iter(given.verdicts)
        decided = [verdict or next(from_model) for verdict in verdicts]
        if expand:
            decided = await asked_on(decided, query, chunks, self._asker, meter=meter)
        # What suffices without the others does so with them; what does not may, unless they are useless.
        saw_all = all(verdict is None or verdict.score == 0 for verdict in verdicts)
        suffices = given.suffices if given.suffices or saw_all else None
        return SetVerdict(verdicts=tuple(decided), suffices=suffices, p_suffices=given.p_suffices if suffices else None)

    def _clear(self, rating: float) -> Verdict | None:
        if self._low <= rating < self._high:
            return None
        p_needed = self._curve(rating) if self._curve else rating
        return Verdict(
            status="judged",
            score=0 if rating < self._low else 1,
            p_needed=p_needed,
            is_calibrated=self._curve is not None,
            reason=f"similarity {2 * rating - 1:.2f}",
        )

    async def _judged(self, query: str, chunks: Sequence[Document], meter: CallMeter, *, expand: bool) -> SetVerdict:
        if judges_sets(self._inner):
            return await self._inner.judge_set(query, chunks, meter=meter, expand=expand)
        verdicts = await judge_each(self._inner, query, chunks, meter=meter, expand=expand)
        return SetVerdict(verdicts=tuple(verdicts))
